//! Quotes what a client sent, for an error about it.

/// How many characters of a text are shown.
const LIMIT: usize = 80;

/// The text in single quotes, cut when it is long.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(LIMIT) {
        None => format!("'{text}'"),
        Some((end, _)) => format!("'{}…'", &text[..end]),
    }
}

/// As [`quote`]; bytes that are not UTF-8 are replaced.
pub(crate) fn quote_bytes(bytes: &[u8]) -> String {
    // Cut first: four bytes make at least one character.
    let near = &bytes[..bytes.len().min(4 * LIMIT + 4)];
    quote(&String::from_utf8_lossy(near))
}
