//! Just enough of Rust's grammar to see what a file imports: words and punctuation with their lines, nested modules, and what
//! is compiled for tests only.

/// What a file says, apart from its test code.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Source {
    /// Paths into this crate, from its root: `crate::a::B`, `super::B` and the members of a group alike.
    pub(crate) paths: Vec<Path>,
    /// The first segments of all other paths and the single words, for looking up other crates.
    pub(crate) words: Vec<(String, usize)>,
    /// The line at which the tests at the end of the file begin, or the number of lines.
    pub(crate) code_lines: usize,
    /// Modules in files of their own that are compiled for tests only, from the crate's root.
    pub(crate) test_modules: Vec<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// From the crate's root; `*` for a glob import.
    pub(crate) segments: Vec<String>,
    pub(crate) line: usize,
}

#[derive(Clone, Debug)]
struct Token {
    /// A word, `::`, or a single character of punctuation.
    text: String,
    line: usize,
}

/// Reads the file that holds `module`, a path from the crate's root.
pub(crate) fn read(module: &[String], text: &str) -> Source {
    let tokens = tokens(text);
    let mut source = Source {
        code_lines: text.lines().count(),
        ..Source::default()
    };
    Reader {
        tokens: &tokens,
        at: 0,
        module: module.to_vec(),
        scopes: Vec::new(),
        source: &mut source,
    }
    .file();
    source
}

struct Reader<'a> {
    tokens: &'a [Token],
    at: usize,
    module: Vec<String>,
    /// For each open brace, whether it belongs to a `mod`.
    scopes: Vec<bool>,
    source: &'a mut Source,
}

impl Reader<'_> {
    fn text(&self, ahead: usize) -> &str {
        self.tokens
            .get(self.at + ahead)
            .map_or("", |token| &token.text)
    }

    fn previous(&self) -> &str {
        self.at
            .checked_sub(1)
            .map_or("", |at| &self.tokens[at].text)
    }

    fn file(&mut self) {
        while self.at < self.tokens.len() {
            match self.text(0) {
                "#" if self.text(1) == "[" => {
                    if self.is_for_tests() {
                        self.skip_test_item();
                    } else {
                        self.at += 2;
                    }
                }
                "mod" if self.text(2) == "{" => {
                    self.module.push(self.text(1).to_owned());
                    self.scopes.push(true);
                    self.at += 3;
                }
                "{" => {
                    self.scopes.push(false);
                    self.at += 1;
                }
                "}" => {
                    if self.scopes.pop() == Some(true) {
                        self.module.pop();
                    }
                    self.at += 1;
                }
                "crate" | "super" | "self" if self.text(1) == "::" && self.previous() != "in" => {
                    self.path()
                }
                _ => self.word(),
            }
        }
    }

    /// A word that begins a path or stands alone; what follows `::` or `.` belongs to something else.
    fn word(&mut self) {
        let token = &self.tokens[self.at];
        if is_word(&token.text) && !matches!(self.previous(), "::" | ".") {
            self.source.words.push((token.text.clone(), token.line));
        }
        self.at += 1;
    }

    /// A path that begins with `crate`, `self` or `super`.
    fn path(&mut self) {
        let mut base = match self.text(0) {
            "crate" => Vec::new(),
            _ => self.module.clone(),
        };
        loop {
            if self.text(0) == "super" {
                base.pop();
            }
            self.at += 2;
            if !(self.text(0) == "super" && self.text(1) == "::") {
                break;
            }
        }
        self.rest(base);
    }

    /// What follows a `::`: a segment, a glob, or a group of paths.
    fn rest(&mut self, mut base: Vec<String>) {
        let line = self.tokens.get(self.at).map_or(0, |token| token.line);
        match self.text(0) {
            "{" => {
                self.at += 1;
                while !matches!(self.text(0), "}" | "") {
                    match self.text(0) {
                        "," => self.at += 1,
                        "as" => self.at += 2,
                        _ => self.rest(base.clone()),
                    }
                }
                self.at += 1;
            }
            "self" => self.at += 1,
            text if text == "*" || is_word(text) => {
                base.push(text.to_owned());
                self.at += 1;
                if self.text(0) == "::"
                    && (self.text(1) == "{" || self.text(1) == "*" || is_word(self.text(1)))
                {
                    self.at += 1;
                    self.rest(base);
                } else {
                    self.source.paths.push(Path {
                        segments: base,
                        line,
                    });
                }
            }
            _ => self.at += 1,
        }
    }

    /// Whether the attribute here is a `cfg` that only tests meet.
    fn is_for_tests(&self) -> bool {
        if self.text(2) != "cfg" {
            return false;
        }
        match (self.text(4), self.text(6)) {
            ("test", _) => true,
            // `all(test, ..)` with `test` in its first place, as it is usually written.
            ("all", "test") => true,
            _ => false,
        }
    }

    fn skip_test_item(&mut self) {
        let start = self.tokens[self.at].line;
        while self.text(0) == "#" {
            self.at += 1;
            self.skip_group();
        }
        // What stands before the item's body: `pub(crate) mod tests`, `fn f() -> X`, `use a::{b}`.
        let mut is_use = false;
        let mut module = None;
        loop {
            match self.text(0) {
                "" => return,
                ";" => {
                    self.at += 1;
                    break;
                }
                "{" => {
                    self.skip_group();
                    if !is_use {
                        break;
                    }
                }
                "(" | "[" => self.skip_group(),
                text => {
                    is_use |= text == "use";
                    if text == "mod" {
                        module = Some(self.text(1).to_owned());
                    }
                    self.at += 1;
                }
            }
        }
        let Some(name) = module else { return };
        let ended = self.at.checked_sub(1).map(|at| &*self.tokens[at].text);
        if ended == Some(";") {
            let mut path = self.module.clone();
            path.push(name);
            self.source.test_modules.push(path);
        } else if self.at >= self.tokens.len() {
            self.source.code_lines = start - 1;
        }
    }

    /// From an opening bracket past the one that closes it.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words and punctuation; comments, literals and lifetimes are left out.
fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest, 1),
            'r' | 'b' | 'c' if literal_prefix(rest).is_some() => literal_prefix(rest).unwrap_or(1),
            '\'' => quote(rest),
            _ if is_word(rest) => {
                let length = rest
                    .find(|c: char| !c.is_alphanumeric() && c != '_')
                    .unwrap_or(rest.len());
                tokens.push(Token {
                    text: rest[..length].to_owned(),
                    line,
                });
                length
            }
            _ if rest.starts_with("::") => {
                tokens.push(Token {
                    text: "::".into(),
                    line,
                });
                2
            }
            _ if first.is_ascii_digit() => rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len()),
            _ => {
                if !first.is_whitespace() {
                    tokens.push(Token {
                        text: first.into(),
                        line,
                    });
                }
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        match (rest.starts_with(b"/*"), rest.starts_with(b"*/")) {
            (true, _) => depth += 1,
            (_, true) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of a string whose text begins at `start`, with its closing quote.
fn string(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of a literal such as `r#"…"#`, `b"…"` or `b'…'`; none when this is a word.
fn literal_prefix(text: &str) -> Option<usize> {
    let letters = text.find(|c| !matches!(c, 'r' | 'b' | 'c'))?;
    let raw = text[..letters].contains('r');
    let rest = &text[letters..];
    if letters > 2 {
        return None;
    }
    if raw {
        let hashes = rest.find(|c| c != '#')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let body = letters + hashes + 1;
        return rest[hashes..].starts_with('"').then(|| {
            text[body..]
                .find(&close)
                .map_or(text.len(), |at| body + at + close.len())
        });
    }
    match rest.as_bytes().first() {
        Some(b'"') => Some(string(text, letters + 1)),
        Some(b'\'') if letters == 1 => Some(letters + quote(rest)),
        _ => None,
    }
}

/// The length of a character literal or a lifetime.
fn quote(text: &str) -> usize {
    let mut characters = text.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            text[after..]
                .find('\'')
                .map_or(text.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        // The word of a lifetime goes with its quote.
        _ => text[1..]
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .map_or(text.len(), |end| end + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::{Source, read};

    fn source(module: &str, text: &str) -> Source {
        let module: Vec<String> = module
            .split("::")
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect();
        read(&module, text)
    }

    fn paths(module: &str, text: &str) -> Vec<String> {
        source(module, text)
            .paths
            .iter()
            .map(|path| path.segments.join("::"))
            .collect()
    }

    #[test]
    fn paths_into_the_crate_are_found_wherever_they_stand() {
        assert_eq!(paths("a", "use crate::b::C;"), ["b::C"]);
        assert_eq!(
            paths(
                "a",
                "pub(crate) use crate::{b, c::{D as E, f::*, self}, G};"
            ),
            ["b", "c::D", "c::f::*", "G"]
        );
        assert_eq!(
            paths(
                "a",
                "fn f(x: &crate::b::C<crate::d::E>) -> X { crate::g::h(x)?; $crate::i::j!() }"
            ),
            ["b::C", "d::E", "g::h", "i::j"]
        );
        assert_eq!(
            paths(
                "a",
                "use super::b; mod n { use super::c; mod o { use super::super::super::d; } } use super::e;"
            ),
            ["b", "a::c", "d", "e"]
        );
        assert_eq!(
            paths("a::b", "use super::c; use super::super::d; use self::e;"),
            ["a::c", "d", "a::b::e"]
        );
        assert_eq!(
            paths(
                "a",
                "pub(in crate::b) fn f() {} pub(crate) struct S; pub(super) struct T; impl S { fn g(self) {} }"
            ),
            [""; 0]
        );
    }

    #[test]
    fn comments_literals_and_tests_say_nothing() {
        let text = r###"
            // crate::a
            /* crate::b /* crate::c */ crate::d */
            /// [`crate::e`]
            const S: &str = "crate::f \" crate::g"; const R: &str = r#"crate::h " "#; const B: &[u8] = b"crate::i";
            const C: [char; 3] = ['"', '\'', '\u{22}']; const D: u8 = b'"'; fn l<'a>(x: &'a str, r: X) { rest(x) }
            #[cfg(test)] use crate::{j, k};
            #[cfg(test)] #[allow(x)] fn helper() -> [u8; 2] { crate::k::l() }
            #[cfg(all(test, feature = "y"))] mod inner { use crate::m; }
            #[cfg(feature = "test")] use crate::n;
            #[cfg(not(test))] use crate::o;
            #[cfg(test)]
            mod tests { use crate::p; }
        "###;
        assert_eq!(paths("a", text), ["n", "o"]);
        let source = source("a", text);
        assert_eq!(source.code_lines, 11);
        assert!(
            source
                .words
                .iter()
                .any(|(word, line)| word == "rest" && *line == 6)
        );
    }

    #[test]
    fn a_test_module_in_its_own_file_is_named() {
        let source = source("a", "#[cfg(test)]\nmod tests;\nmod other;\nuse crate::b;");
        assert_eq!(source.test_modules, [["a", "tests"]]);
        assert_eq!((source.paths.len(), source.code_lines), (1, 4));
    }
}
