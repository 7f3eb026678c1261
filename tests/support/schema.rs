//! Messages held against the protocol's own JSON schema, `tests/data/schema.json`.
//!
//! Which definition a message has to meet is read from the schema, too: a new revision brings its own methods along.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

/// Validates a message that a server sends: a notification, a result or an error.
///
/// A notification of the protocol meets the definition for its method, an error that for its code, where there is one.
///
/// # Errors
///
/// Names each place where the message departs from its definition, one a line.
pub(crate) fn validate_server_message(message: &Value) -> Result<(), String> {
    validate(None, message)
}

/// Validates a server's message in the answer to a request with this method: a result meets the definition for the method.
///
/// # Errors
///
/// As [`validate_server_message`]; also when the schema defines no result for the method.
pub(crate) fn validate_reply(method: &str, message: &Value) -> Result<(), String> {
    validate(Some(method), message)
}

/// Validates any value against a definition of the schema.
///
/// # Errors
///
/// Names each place where the value departs from it, one a line; also when there is no such definition.
pub(crate) fn validate_definition(definition: &str, value: &Value) -> Result<(), String> {
    let validator = schema().validator(definition)?;
    let problems: Vec<String> = validator
        .iter_errors(value)
        .map(|error| {
            format!(
                "{definition}: at {:?}: {error}",
                error.instance_path().to_string()
            )
        })
        .collect();
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems.join("\n"))
    }
}

fn validate(request: Option<&str>, message: &Value) -> Result<(), String> {
    let schema = schema();
    let has = |key: &str| message.get(key).is_some();
    match (has("method"), has("result"), has("error")) {
        (true, false, false) => {
            if has("id") {
                return Err("a server sends no requests: a message with a method has no id".into());
            }
            let method = message["method"].as_str().unwrap_or_default();
            if method == "notifications/cancelled" {
                return Err("a server sends notifications/cancelled over stdio only".into());
            }
            let specific = schema.notifications.get(method);
            if specific.is_none() && schema.client_methods.iter().any(|known| known == method) {
                return Err(format!("{method} is no method of a server"));
            }
            validate_definition("JSONRPCNotification", message)?;
            specific.map_or(Ok(()), |definition| {
                validate_definition(definition, message)
            })
        }
        (false, true, false) => {
            validate_definition("JSONRPCResultResponse", message)?;
            let Some(method) = request else { return Ok(()) };
            let specific = schema.results.get(method);
            let definition =
                specific.ok_or_else(|| format!("the schema has no result of {method}"))?;
            validate_definition(definition, message)
        }
        (false, false, true) => {
            validate_definition("JSONRPCErrorResponse", message)?;
            let specific = message["error"]["code"]
                .as_i64()
                .and_then(|code| schema.errors.get(&code));
            match specific {
                Some((definition, Part::Message)) => validate_definition(definition, message),
                Some((definition, Part::Error)) => {
                    validate_definition(definition, &message["error"])
                }
                None => Ok(()),
            }
        }
        _ => Err(format!(
            "neither a notification nor a result nor an error: {message}"
        )),
    }
}

/// What an error's definition describes.
#[derive(Clone, Copy)]
enum Part {
    Message,
    Error,
}

struct Schema {
    definitions: Value,
    /// Compiled at their first use; each stays for the life of the process.
    validators: Mutex<HashMap<String, &'static Validator>>,
    /// A server's notification by its method.
    notifications: HashMap<String, String>,
    /// The methods of a client's requests.
    client_methods: Vec<String>,
    /// The definition of a whole result response, by the method of its request.
    results: HashMap<String, String>,
    /// An error's definition by its code.
    errors: HashMap<i64, (String, Part)>,
}

fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let text = include_str!("../data/schema.json");
        Schema::new(&serde_json::from_str(text).expect("schema.json is JSON"))
    })
}

impl Schema {
    fn new(schema: &Value) -> Self {
        let definitions = schema["$defs"].clone();
        let method = |name: &str| definitions[name]["properties"]["method"]["const"].as_str();
        let of = |union: &str| -> Vec<(String, String)> {
            let members = definitions[union]["anyOf"].as_array();
            let names = members.into_iter().flatten().map(|member| {
                let reference = member["$ref"].as_str().unwrap_or_default();
                reference.rsplit('/').next().unwrap_or_default().to_owned()
            });
            names
                .filter_map(|name| Some((method(&name)?.to_owned(), name)))
                .collect()
        };

        let requests = of("ClientRequest");
        let client_methods = requests.iter().map(|(method, _)| method.clone()).collect();
        let results = requests
            .into_iter()
            .map(|(method, request)| (method, request.replace("Request", "ResultResponse")))
            .collect();
        let names = definitions.as_object().into_iter().flatten();
        let errors = names.filter_map(|(name, definition)| {
            let of_error = definition["properties"]["code"]["const"].as_i64();
            let parts = definition["properties"]["error"]["allOf"].as_array();
            let of_message = parts
                .into_iter()
                .flatten()
                .find_map(|part| part["properties"]["code"]["const"].as_i64());
            let found = of_message.map(|code| (code, Part::Message));
            let (code, part) = found.or(of_error.map(|code| (code, Part::Error)))?;
            Some((code, (name.clone(), part)))
        });
        Self {
            notifications: of("ServerNotification").into_iter().collect(),
            client_methods,
            results,
            errors: errors.collect(),
            validators: Mutex::default(),
            definitions,
        }
    }

    fn validator(&self, definition: &str) -> Result<&'static Validator, String> {
        if self.definitions.get(definition).is_none() {
            return Err(format!("the schema has no definition {definition}"));
        }
        let mut validators = self
            .validators
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(validator) = validators.get(definition) {
            return Ok(validator);
        }
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$ref": format!("#/$defs/{definition}"),
            "$defs": self.definitions,
        });
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&schema);
        let validator = validator.map_err(|error| format!("{definition} is no schema: {error}"))?;
        let validator: &'static Validator = Box::leak(Box::new(validator));
        validators.insert(definition.to_owned(), validator);
        Ok(validator)
    }
}

/// Whether the schema defines what a request with this method results in.
pub(crate) fn has_result(method: &str) -> bool {
    schema().results.contains_key(method)
}

/// How many definitions back the checks above, for the test of this module: notifications, results, errors.
pub(crate) fn known() -> (usize, usize, usize) {
    let schema = schema();
    (
        schema.notifications.len(),
        schema.results.len(),
        schema.errors.len(),
    )
}
