//! Reading a JSON text from front to back.

use super::search::special;
use super::{JsonError, Kind, MAX_DEPTH, Span, Text, Value};

/// Reads a JSON text from front to back.
#[derive(Clone, Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at: 0,
            depth: 0,
        }
    }

    pub(crate) fn text(&self) -> &'a str {
        self.text
    }

    /// The kind of the value that comes next; nothing is consumed but white space.
    pub(crate) fn kind(&mut self) -> Result<Kind, JsonError> {
        self.skip_space();
        Ok(match self.peek() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b'-' | b'0'..=b'9') => Kind::Number,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') => Kind::Null,
            _ => return Err(self.error("expected a value")),
        })
    }

    /// Validates and skips one value, whatever it is.
    pub(crate) fn value(&mut self) -> Result<Span, JsonError> {
        self.skip_space();
        let start = self.at;
        let outside = self.depth;
        // One bit a level, the innermost lowest: set for an object.
        let mut objects = 0u128;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.string_body()?;
                }
                Some(b'{') => {
                    self.enter()?;
                    self.skip_space();
                    if self.peek() != Some(b'}') {
                        objects = objects << 1 | 1;
                        self.name()?;
                        self.skip_space();
                        continue;
                    }
                    self.leave();
                }
                Some(b'[') => {
                    self.enter()?;
                    self.skip_space();
                    if self.peek() != Some(b']') {
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
                    return Ok(Span {
                        start,
                        end: self.at,
                    });
                }
                self.skip_space();
                let in_object = objects & 1 == 1;
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        self.skip_space();
                        if in_object {
                            self.name()?;
                            self.skip_space();
                        }
                        break;
                    }
                    Some(b'}') if in_object => {}
                    Some(b']') if !in_object => {}
                    _ if in_object => return Err(self.error("expected `,` or `}`")),
                    _ => return Err(self.error("expected `,` or `]`")),
                }
                objects >>= 1;
                self.leave();
            }
        }
    }

    /// As [`value`](Self::value), and tells the kind.
    pub(crate) fn any(&mut self) -> Result<Value, JsonError> {
        let kind = self.kind()?;
        Ok(if kind == Kind::String {
            let Text { span, escaped } = self.string()?;
            Value {
                kind,
                span,
                escaped,
            }
        } else {
            Value {
                kind,
                span: self.value()?,
                escaped: false,
            }
        })
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Result<Text, JsonError> {
        self.skip_space();
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a string"));
        }
        let escaped = self.string_body()?;
        Ok(Text {
            span: Span {
                start,
                end: self.at,
            },
            escaped,
        })
    }

    /// Reads an object; `member` is called with each name and must consume the member's value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.skip_space();
        let start = self.at;
        if self.peek() != Some(b'{') {
            return Err(self.error("expected an object"));
        }
        self.enter()?;
        self.skip_space();
        if self.peek() != Some(b'}') {
            loop {
                let name = self.name()?;
                member(self, name)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b'}') => break,
                    _ => return Err(self.error("expected `,` or `}`")),
                }
                self.skip_space();
            }
        }
        self.leave();
        Ok(Span {
            start,
            end: self.at,
        })
    }

    /// Reads an array; `element` is called before each element and must consume it.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), JsonError>,
    ) -> Result<Span, JsonError> {
        self.skip_space();
        let start = self.at;
        if self.peek() != Some(b'[') {
            return Err(self.error("expected an array"));
        }
        self.enter()?;
        self.skip_space();
        if self.peek() != Some(b']') {
            loop {
                element(self)?;
                self.skip_space();
                match self.peek() {
                    Some(b',') => self.at += 1,
                    Some(b']') => break,
                    _ => return Err(self.error("expected `,` or `]`")),
                }
            }
        }
        self.leave();
        Ok(Span {
            start,
            end: self.at,
        })
    }

    /// Checks that nothing but white space remains.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        self.skip_space();
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            Err(self.error("expected the end of the text"))
        }
    }

    #[inline]
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    fn error(&self, what: &'static str) -> JsonError {
        let what = if self.at < self.bytes.len() {
            what
        } else {
            "unexpected end of the text"
        };
        JsonError { at: self.at, what }
    }

    #[inline]
    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    #[inline]
    fn enter(&mut self) -> Result<(), JsonError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error("more than 128 arrays and objects inside one another"));
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
    #[inline]
    fn name(&mut self) -> Result<Text, JsonError> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a member's name in double quotes"));
        }
        let escaped = self.string_body()?;
        let span = Span {
            start,
            end: self.at,
        };
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.error("expected `:`"));
        }
        self.at += 1;
        Ok(Text { span, escaped })
    }

    /// From the opening quote past the closing one; tells whether there were escapes.
    #[inline]
    fn string_body(&mut self) -> Result<bool, JsonError> {
        self.at = special(self.bytes, self.at + 1);
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(false);
        }
        self.string_rest()
    }

    fn string_rest(&mut self) -> Result<bool, JsonError> {
        let mut escaped = false;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(_) => {
                    return Err(self.error("control character in a string, which must be escaped,"));
                }
                None => return Err(self.error("")),
            }
            self.at = special(self.bytes, self.at);
        }
    }

    fn escape(&mut self) -> Result<(), JsonError> {
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
                        return Err(self.error("expected four hexadecimal digits after `\\u`"));
                    }
                }
                self.at += 1;
                Ok(())
            }
            _ => Err(self.error("unknown escape in a string")),
        }
    }

    fn scalar(&mut self) -> Result<(), JsonError> {
        let literal: &[u8] = match self.peek() {
            Some(b'-' | b'0'..=b'9') => return self.number(),
            Some(b't') => b"true",
            Some(b'f') => b"false",
            Some(b'n') => b"null",
            _ => return Err(self.error("expected a value")),
        };
        if self.bytes[self.at..].starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(self.error("expected a value"))
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
            if self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return Err(self.error("leading zero in a number"));
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

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at == start {
            return Err(self.error("expected a digit"));
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

    fn whole(text: &str) -> Result<Span, JsonError> {
        let mut scanner = Scanner::new(text);
        let span = scanner.value()?;
        scanner.end()?;
        Ok(span)
    }

    fn string(text: &str) -> Text {
        Scanner::new(text).string().unwrap()
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
        let mut scanner = Scanner::new(&text);
        let outcome = scanner.object(|scanner, _| scanner.value().map(drop));
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
        let mut scanner = Scanner::new(text);
        let read = scanner.object(|scanner, name| {
            members.push((name, scanner.any()?.span));
            Ok(())
        });
        if read.and_then(|_| scanner.end()).is_ok() {
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
