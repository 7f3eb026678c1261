//! State that a client carries between two requests, and cannot change.
//!
//! Nothing is kept on the server, so whatever it must remember goes to the client and comes back.
//! An HMAC over the state, the request it belongs to and its expiry shows that it is still what was
//! given out. It is not a secret: a client can read it. A server with users would bind it to the
//! user, too.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use mcp_channel::{Message, RpcError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::Sha256;

const KEY_VARIABLE: &str = "EVERYTHING_STATE_KEY";
const LEAST_KEY_BYTES: usize = 32;
/// How long a person may take to answer.
const LIFETIME_SECONDS: u64 = 10 * 60;

/// Seals and opens states.
pub struct Seal {
    mac: Hmac<Sha256>,
}

#[derive(Deserialize, Serialize)]
struct Sealed<T> {
    /// Seconds since 1970.
    expires: u64,
    state: T,
}

impl Seal {
    /// With the key of the environment, or a random one.
    pub fn from_env() -> Result<Self, String> {
        let key = match std::env::var(KEY_VARIABLE) {
            Ok(key) if key.len() >= LEAST_KEY_BYTES => key.into_bytes(),
            Ok(key) => {
                return Err(format!(
                    "{KEY_VARIABLE} has {} bytes: it needs {LEAST_KEY_BYTES} or more",
                    key.len()
                ));
            }
            Err(std::env::VarError::NotPresent) => {
                let mut key = [0; LEAST_KEY_BYTES];
                getrandom::fill(&mut key).map_err(|why| format!("no random numbers: {why}"))?;
                key.to_vec()
            }
            Err(why) => return Err(format!("{KEY_VARIABLE}: {why}")),
        };
        Self::new(&key)
    }

    fn new(key: &[u8]) -> Result<Self, String> {
        let mac = Hmac::new_from_slice(key).map_err(|why| why.to_string())?;
        Ok(Self { mac })
    }

    /// Seals a state for the next round of this request.
    pub fn seal(&self, message: &Message, state: impl Serialize) -> Result<String, RpcError> {
        self.seal_until(now() + LIFETIME_SECONDS, message, state)
    }

    fn seal_until(
        &self,
        expires: u64,
        message: &Message,
        state: impl Serialize,
    ) -> Result<String, RpcError> {
        let payload = serde_json::to_vec(&Sealed { expires, state })
            .map_err(|why| RpcError::internal(format!("the state does not serialize: {why}")))?;
        let tag = self.mac(message, &payload)?.finalize().into_bytes();
        Ok(format!("{}.{}", BASE64.encode(payload), BASE64.encode(tag)))
    }

    /// Opens a state that came back with this request.
    pub fn open<T: DeserializeOwned>(
        &self,
        message: &Message,
        sealed: &str,
    ) -> Result<T, RpcError> {
        let refused = || {
            RpcError::invalid_params(
                "`requestState` is not what this server gave out for this request: send it back \
                 unchanged, with the same method, name and arguments",
            )
        };
        let (payload, tag) = sealed.split_once('.').ok_or_else(refused)?;
        let payload = BASE64.decode(payload).map_err(|_| refused())?;
        let tag = BASE64.decode(tag).map_err(|_| refused())?;
        let mac = self.mac(message, &payload)?;
        // In constant time; nothing of the payload is read before.
        mac.verify_slice(&tag).map_err(|_| refused())?;
        let sealed: Sealed<T> = serde_json::from_slice(&payload).map_err(|_| refused())?;
        if sealed.expires < now() {
            return Err(RpcError::invalid_params(
                "`requestState` has expired: start again without it",
            ));
        }
        Ok(sealed.state)
    }

    fn mac(&self, message: &Message, payload: &[u8]) -> Result<Hmac<Sha256>, RpcError> {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            arguments: Option<Value>,
        }
        let mut arguments = message.params::<Params>()?.arguments.unwrap_or_default();
        if arguments.is_null() {
            arguments = Value::Object(serde_json::Map::new());
        }
        // A client may write the same arguments in another order.
        arguments.sort_all_objects();
        let arguments = arguments.to_string();
        let name = message.name().unwrap_or_default();
        let mut mac = self.mac.clone();
        for part in [
            message.method().as_bytes(),
            name.as_bytes(),
            arguments.as_bytes(),
            payload,
        ] {
            // The lengths keep one part from passing for the end of another.
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        Ok(mac)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "another instance may open the state, and the wall clock is what they share"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seal() -> Seal {
        Seal::new(&[7; 32]).unwrap()
    }

    fn call(params: &str) -> Message {
        let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        Message::parse(json).unwrap()
    }

    fn opened(message: &Message, sealed: &str) -> Result<String, RpcError> {
        seal().open(message, sealed)
    }

    #[test]
    fn a_state_opens_for_the_request_that_it_was_sealed_for() {
        let first = call(r#"{"name":"t","arguments":{"a":1,"b":{"c":2,"d":3}}}"#);
        let sealed = seal().seal(&first, "so far").unwrap();
        assert_eq!(opened(&first, &sealed).unwrap(), "so far");
        let reordered = call(
            r#"{"requestState":"x","arguments":{ "b":{"d":3,"c":2}, "a":1 },"inputResponses":{},"name":"t"}"#,
        );
        assert_eq!(opened(&reordered, &sealed).unwrap(), "so far");
    }

    #[test]
    fn no_arguments_are_the_same_as_empty_ones() {
        let sealed = seal().seal(&call(r#"{"name":"t"}"#), "s").unwrap();
        assert!(opened(&call(r#"{"name":"t","arguments":{}}"#), &sealed).is_ok());
    }

    #[test]
    fn a_state_opens_for_no_other_request() {
        let sealed = seal()
            .seal(&call(r#"{"name":"t","arguments":{"a":1}}"#), "s")
            .unwrap();
        let prompt = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"t","arguments":{"a":1}}}"#;
        for other in [
            call(r#"{"name":"u","arguments":{"a":1}}"#),
            call(r#"{"name":"t","arguments":{"a":2}}"#),
            call(r#"{"name":"t"}"#),
            Message::parse(prompt).unwrap(),
        ] {
            assert_eq!(opened(&other, &sealed).unwrap_err().code(), -32602);
        }
    }

    #[test]
    fn a_state_that_was_changed_does_not_open() {
        let message = call(r#"{"name":"t"}"#);
        let sealed = seal().seal(&message, "s").unwrap();
        let (payload, tag) = sealed.split_once('.').unwrap();
        let richer = BASE64.encode(r#"{"expires":99999999999,"state":"rich"}"#);
        for changed in [
            String::new(),
            ".".into(),
            payload.into(),
            format!("{payload}."),
            format!("{payload}.{}", &tag[..tag.len() - 4]),
            format!("{sealed}-TAMPERED"),
            format!("{sealed}A"),
            format!("{sealed} "),
            format!(" {sealed}"),
            format!("{sealed}.{tag}"),
            format!("{richer}.{tag}"),
        ] {
            let refused = opened(&message, &changed).unwrap_err();
            assert_eq!(refused.code(), -32602, "{changed:?}");
        }
        // Nor does one of another server.
        let other = Seal::new(&[8; 32]).unwrap();
        assert!(other.open::<String>(&message, &sealed).is_err());
    }

    #[test]
    fn a_state_expires() {
        let message = call(r#"{"name":"t"}"#);
        let sealed = seal().seal_until(now() - 1, &message, "s").unwrap();
        let refused = opened(&message, &sealed).unwrap_err();
        assert!(refused.message().contains("expired"), "{refused}");
    }
}
