//! A validating JSON scanner that allocates nothing.
//!
//! It checks the whole grammar of RFC 8259 and says where values lie; it builds no tree. Nesting is
//! bounded by [`MAX_DEPTH`] and takes no stack, so the cost of a hostile document is bounded by its
//! length.

use super::search::special;
use super::value::{JsonError, Kind, Span, Text, Value};

/// How deeply arrays and objects may nest.
///
/// serde_json gives up at the same depth, counted from the value it is given: `params` lies one
/// level deeper than the message, so whatever passes here can be deserialized there.
pub(crate) const MAX_DEPTH: u32 = 128;

/// Reads `text` from its front as far as `read` does.
///
/// # Errors
///
/// What stopped it.
pub(crate) fn scan<'a, T>(
    text: &'a str,
    read: impl FnOnce(&mut Scanner<'a>) -> Result<T, Stop>,
) -> Result<T, JsonError> {
    // Spans have to reach all of the text.
    Span::new(0, text.len())?;
    let mut scanner = Scanner::new(text);
    read(&mut scanner).map_err(|stop| scanner.error(stop))
}

/// The text is not JSON; the scanner knows why.
#[derive(Debug)]
pub(crate) struct Stop;

/// Reads a JSON text from front to back.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    /// Why it has stopped.
    fault: &'static str,
}

/// An object or array that is being read.
#[derive(Debug)]
pub(crate) struct Collection {
    start: usize,
    /// Whether nothing of it was read so far.
    fresh: bool,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            fault: "",
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// What is wrong, after it has stopped.
    pub(super) fn error(&self, _: Stop) -> JsonError {
        let at = self.at;
        let what = if at < self.text.len() {
            self.fault
        } else {
            "unexpected end of the text"
        };
        JsonError { at, what }
    }

    /// The kind of the value that comes next; nothing is consumed but white space.
    #[inline]
    pub(crate) fn kind(&mut self) -> Result<Kind, Stop> {
        Ok(match self.next() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => return Err(self.stop("expected a value")),
        })
    }

    /// Validates and skips one value, whatever it is.
    pub(crate) fn value(&mut self) -> Result<Span, Stop> {
        let mut next = self.next();
        let start = self.at;
        let outside = self.depth;
        // One bit a level, the innermost lowest: set for an object.
        let mut objects = 0u128;
        loop {
            match next {
                Some(b'"') => {
                    self.quoted()?;
                }
                Some(b'{') => {
                    self.enter()?;
                    if self.next() != Some(b'}') {
                        objects = objects << 1 | 1;
                        self.name()?;
                        next = self.next();
                        continue;
                    }
                    self.leave();
                }
                Some(b'[') => {
                    self.enter()?;
                    next = self.next();
                    if next != Some(b']') {
                        objects <<= 1;
                        continue;
                    }
                    self.leave();
                }
                _ => self.scalar()?,
            }
            // A value has ended: close what ends with it.
            loop {
                if self.depth == outside {
                    return Ok(Span::in_reach(start, self.at));
                }
                let in_object = objects & 1 == 1;
                match self.next() {
                    Some(b',') => {
                        self.at += 1;
                        if in_object {
                            self.name()?;
                        }
                        next = self.next();
                        break;
                    }
                    Some(b'}') if in_object => {}
                    Some(b']') if !in_object => {}
                    _ if in_object => return Err(self.stop("expected `,` or `}`")),
                    _ => return Err(self.stop("expected `,` or `]`")),
                }
                objects >>= 1;
                self.leave();
            }
        }
    }

    /// As [`value`](Self::value), and tells the kind.
    pub(crate) fn any(&mut self) -> Result<Value, Stop> {
        let kind = self.kind()?;
        if kind == Kind::String {
            return self.quoted().map(|text| Value { kind, span: text.0 });
        }
        let span = self.value()?;
        Ok(Value { kind, span })
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<Text, Stop> {
        if self.next() != Some(b'"') {
            return Err(self.stop("expected a string"));
        }
        self.quoted()
    }

    /// Enters the object that comes next, to be read with [`member`](Self::member).
    pub(crate) fn object(&mut self) -> Result<Collection, Stop> {
        self.collection(b'{', "expected an object")
    }

    /// The name of the next member, whose value is to be consumed before the next call. None when
    /// the object has ended.
    pub(crate) fn member(&mut self, object: &mut Collection) -> Result<Option<Text>, Stop> {
        if self.another(object, b'}', "expected `,` or `}`")? {
            self.name().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Enters the array that comes next, to be read with [`element`](Self::element).
    pub(crate) fn array(&mut self) -> Result<Collection, Stop> {
        self.collection(b'[', "expected an array")
    }

    /// Whether there is another element, which is to be consumed before the next call.
    pub(crate) fn element(&mut self, array: &mut Collection) -> Result<bool, Stop> {
        self.another(array, b']', "expected `,` or `]`")
    }

    /// The span of a collection that has just ended.
    pub(crate) fn span(&self, ended: &Collection) -> Span {
        Span::in_reach(ended.start, self.at)
    }

    /// Checks that nothing but white space remains.
    pub(crate) fn end(&mut self) -> Result<(), Stop> {
        match self.next() {
            None => Ok(()),
            Some(_) => Err(self.stop("expected the end of the text")),
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space, and peeks.
    #[inline]
    fn next(&mut self) -> Option<u8> {
        loop {
            match self.peek() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                next => return next,
            }
        }
    }

    #[cold]
    fn stop(&mut self, fault: &'static str) -> Stop {
        self.fault = fault;
        Stop
    }

    fn collection(&mut self, open: u8, fault: &'static str) -> Result<Collection, Stop> {
        if self.next() != Some(open) {
            return Err(self.stop(fault));
        }
        let start = self.at;
        self.enter()?;
        Ok(Collection { start, fresh: true })
    }

    /// Whether the collection goes on. Consumes the bracket that ends it, or the comma between two
    /// of its parts.
    #[inline]
    fn another(
        &mut self,
        collection: &mut Collection,
        close: u8,
        fault: &'static str,
    ) -> Result<bool, Stop> {
        match self.next() {
            Some(byte) if byte == close => {
                self.leave();
                return Ok(false);
            }
            _ if std::mem::take(&mut collection.fresh) => {}
            Some(b',') => self.at += 1,
            _ => return Err(self.stop(fault)),
        }
        Ok(true)
    }

    #[inline]
    fn enter(&mut self) -> Result<(), Stop> {
        if self.depth == MAX_DEPTH {
            return Err(self.stop("more than 128 arrays and objects inside one another"));
        }
        self.depth += 1;
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn leave(&mut self) {
        self.depth -= 1;
        self.at += 1;
    }

    /// A member's name and the colon after it.
    fn name(&mut self) -> Result<Text, Stop> {
        if self.next() != Some(b'"') {
            return Err(self.stop("expected a member's name in double quotes"));
        }
        let name = self.quoted()?;
        if self.next() != Some(b':') {
            return Err(self.stop("expected `:`"));
        }
        self.at += 1;
        Ok(name)
    }

    /// From an opening quote past the closing one.
    #[inline]
    fn quoted(&mut self) -> Result<Text, Stop> {
        let start = self.at;
        self.at = special(self.text.as_bytes(), start + 1);
        if self.peek() != Some(b'"') {
            return self.quoted_rest(start);
        }
        self.at += 1;
        Ok(Text(Span::in_reach(start, self.at)))
    }

    /// As [`quoted`](Self::quoted), from the first byte that is not plain.
    #[inline(never)]
    fn quoted_rest(&mut self, start: usize) -> Result<Text, Stop> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    // Without an escape, `quoted` would have found the end.
                    return Ok(Text(Span::in_reach(start, self.at).escaped()));
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(self.stop("control character in a string, which must be escaped,")),
            }
            self.at = special(self.text.as_bytes(), self.at);
        }
    }

    fn escape(&mut self) -> Result<(), Stop> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                for _ in 0..4 {
                    self.at += 1;
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.stop("expected four hexadecimal digits after `\\u`"));
                    }
                }
                self.at += 1;
                Ok(())
            }
            _ => Err(self.stop("unknown escape in a string")),
        }
    }

    fn scalar(&mut self) -> Result<(), Stop> {
        let literal: &[u8] = match self.peek() {
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return Err(self.stop("expected a value")),
        };
        if self.text.as_bytes()[self.at..].starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(self.stop("expected a value"))
        }
    }

    fn number(&mut self) -> Result<(), Stop> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.stop("leading zero in a number"));
            }
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Stop> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.stop("expected a digit"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::value::RawValue;

    use super::*;
    use crate::protocol::json::MAX_LENGTH;

    fn whole(text: &str) -> Result<Span, JsonError> {
        scan(text, |scanner| {
            let span = scanner.value()?;
            scanner.end()?;
            Ok(span)
        })
    }

    fn string(text: &str) -> Text {
        scan(text, Scanner::string).unwrap()
    }

    #[test]
    fn a_text_is_read_up_to_the_limit() {
        let last = Span::new(MAX_LENGTH - 1, MAX_LENGTH).unwrap();
        assert_eq!(last.range(), MAX_LENGTH - 1..MAX_LENGTH);
        let error = Span::new(0, MAX_LENGTH + 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "2 GiB of text or more at byte 2147483647"
        );
    }

    #[test]
    fn what_is_not_json_is_refused_where_it_goes_wrong() {
        for (text, message) in [
            ("", "unexpected end of the text at byte 0"),
            ("  ", "unexpected end of the text at byte 2"),
            ("nul", "expected a value at byte 0"),
            ("+1", "expected a value at byte 0"),
            ("01", "leading zero in a number at byte 1"),
            ("-01", "leading zero in a number at byte 2"),
            ("-", "unexpected end of the text at byte 1"),
            ("1.", "unexpected end of the text at byte 2"),
            ("1.x", "expected a digit at byte 2"),
            ("1e+", "unexpected end of the text at byte 3"),
            ("[1,]", "expected a value at byte 3"),
            ("[1 2]", "expected `,` or `]` at byte 3"),
            ("[1}", "expected `,` or `]` at byte 2"),
            (
                "{\"a\":1,}",
                "expected a member's name in double quotes at byte 7",
            ),
            (
                "{a:1}",
                "expected a member's name in double quotes at byte 1",
            ),
            ("{\"a\" 1}", "expected `:` at byte 5"),
            ("{\"a\":1]", "expected `,` or `}` at byte 6"),
            ("1 1", "expected the end of the text at byte 2"),
            ("\"\\x\"", "unknown escape in a string at byte 2"),
            (
                "\"\\u12g4\"",
                "expected four hexadecimal digits after `\\u` at byte 5",
            ),
            (
                "\"\\u+123\"",
                "expected four hexadecimal digits after `\\u` at byte 3",
            ),
            (
                "\"12345678\u{1f}\"",
                "control character in a string, which must be escaped, at byte 9",
            ),
            ("\"abc", "unexpected end of the text at byte 4"),
            ("\u{feff}1", "expected a value at byte 0"),
            ("\u{a0}1", "expected a value at byte 0"),
        ] {
            let error = whole(text).unwrap_err();
            assert_eq!(error.to_string(), message, "{text}");
            assert!(serde_json::from_str::<IgnoredAny>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nesting_ends_at_the_limit_however_it_is_read() {
        let nested = |open: &str, close: &str, levels: usize| {
            format!("{}1{}", open.repeat(levels), close.repeat(levels))
        };
        for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"a\":[", "]}]")] {
            let each = open.matches(['[', '{']).count();
            let fits = MAX_DEPTH as usize / each;
            assert!(whole(&nested(open, close, fits)).is_ok(), "{open}");
            assert!(whole(&nested(open, close, fits + 1)).is_err(), "{open}");
        }
        assert!(whole(&"[".repeat(1_000_000)).is_err());
        // Levels that were entered by hand count as well.
        let text = format!("{{\"a\":{}}}", nested("[", "]", 128));
        let outcome = scan(&text, |scanner| {
            let mut object = scanner.object()?;
            while scanner.member(&mut object)?.is_some() {
                scanner.value()?;
            }
            Ok(())
        });
        assert!(outcome.unwrap_err().to_string().contains("128"));
    }

    #[test]
    fn strings_are_compared_and_decoded_unescaped() {
        for (json, plain) in [
            (r#""""#, ""),
            (r#""id""#, "id"),
            (r#""\u0069\u0064""#, "id"),
            (r#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{c}\n\r\t"),
            (r#""\ud83d\uDE00é""#, "😀é"),
        ] {
            let text = string(json);
            assert!(text.is(json, plain), "{json}");
            assert!(!text.is(json, "other"), "{json}");
            assert_eq!(text.decode(json).unwrap(), plain);
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_grammatical_but_no_text() {
        for json in [
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\u0041""#,
            r#""\ud800x""#,
        ] {
            assert!(whole(json).is_ok(), "{json}");
            assert_eq!(string(json).decode(json), None, "{json}");
            assert!(!string(json).is(json, "\u{fffd}"));
        }
        let ones = |json: &str| string(json).code_points(json).collect::<Vec<_>>();
        assert_eq!(ones(r#""\ud800""#), ones(r#""\uD800""#));
        assert_eq!(ones(r#""\ud800\u0041""#), [0xd800, 0x41]);
    }

    #[test]
    fn the_eight_byte_search_finds_what_a_byte_search_finds() {
        for length in 0..40 {
            for at in 0..length {
                for byte in 0..=255u8 {
                    for fill in [b'x', 0x80, 0xff, b'!', b'#', b'[', b']', b' '] {
                        let mut bytes = vec![fill; length];
                        bytes[at] = byte;
                        let stops = byte < 0x20 || byte == b'"' || byte == b'\\';
                        let want = if stops { at } else { length };
                        assert_eq!(special(&bytes, 0), want, "{byte} at {at} of {length}");
                    }
                }
            }
        }
    }

    /// JSON and near misses of it.
    fn documents() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("null".to_owned()),
            Just("true".to_owned()),
            Just("false".to_owned()),
            "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][-+]?[0-9]{1,2})?",
            "[-+0-9.eE]{1,6}",
            "\"([ -!#-\\[\\]-~é😀]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}){0,12}\"",
            "\"[\\x00-\\x7f]{0,10}\"",
        ];
        let space = "[ \n\r\t]{0,2}";
        leaf.prop_recursive(5, 40, 5, move |inner| {
            let member = (
                space,
                "\"[a-c\\\\u0061]{0,3}\"",
                space,
                inner.clone(),
                space,
            )
                .prop_map(|(a, name, b, value, c)| format!("{a}{name}{b}:{value}{c}"));
            let element = (space, inner, space).prop_map(|(a, value, b)| format!("{a}{value}{b}"));
            prop_oneof![
                prop::collection::vec(member, 0..5)
                    .prop_map(|members| format!("{{{}}}", members.join(","))),
                prop::collection::vec(element, 0..5)
                    .prop_map(|elements| format!("[{}]", elements.join(","))),
            ]
        })
    }

    fn agrees(text: &str) {
        let theirs = serde_json::from_str::<&RawValue>(text);
        match whole(text) {
            Ok(span) => assert_eq!(span.of(text), theirs.expect(text).get()),
            Err(ours) => assert!(theirs.is_err(), "{text}: {ours}"),
        }
        let mut members = Vec::new();
        let read = scan(text, |scanner| {
            let mut object = scanner.object()?;
            while let Some(name) = scanner.member(&mut object)? {
                members.push((name, scanner.any()?.span));
            }
            scanner.end()
        });
        if read.is_ok() {
            // serde_json has no form for half of a pair.
            let Some(ours) = members
                .iter()
                .map(|(name, span)| Some((name.decode(text)?.into_owned(), span.of(text))))
                .collect::<Option<BTreeMap<_, _>>>()
            else {
                return;
            };
            let theirs: BTreeMap<String, &RawValue> = serde_json::from_str(text).expect(text);
            let theirs: BTreeMap<_, _> = theirs
                .into_iter()
                .map(|(name, raw)| (name, raw.get()))
                .collect();
            assert_eq!(ours, theirs);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn documents_are_judged_as_serde_json_judges_them(text in documents()) {
            agrees(&text);
        }

        #[test]
        fn damaged_documents_are_judged_as_serde_json_judges_them(
            text in documents(),
            cut in any::<prop::sample::Index>(),
            insert in "[\\[\\]{}:,\"\\\\0-9eu.\\- \n\\x00]{0,2}",
            drop in 0..3usize,
        ) {
            let mut at = cut.index(text.len() + 1);
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            let mut after = (at + drop).min(text.len());
            while !text.is_char_boundary(after) {
                after += 1;
            }
            agrees(&format!("{}{insert}{}", &text[..at], &text[after..]));
        }
    }
}
