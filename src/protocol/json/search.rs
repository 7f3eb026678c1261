//! Finds the end of a run of plain characters in a string.

/// The first quote, backslash or control character at or after `at`; the length when there is none.
///
/// It looks at eight bytes at a time; the highest bit of each byte says whether it matches. All
/// bytes that it looks for are ASCII, and all but the backslash are below 0x21 once the
/// second-lowest bit of each byte is flipped. A borrow in the subtractions can only disturb the
/// bytes above a match, and the lowest match is the one that counts.
#[inline]
pub(crate) fn special(bytes: &[u8], at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    /// After this many words, the search goes on in larger steps.
    const SHORT: usize = 8;

    let (words, _) = bytes.get(at..).unwrap_or_default().as_chunks::<8>();
    for (n, word) in words.iter().take(SHORT).enumerate() {
        let word = u64::from_le_bytes(*word);
        let quote_or_control = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
        let backslash = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
        let found = (quote_or_control | backslash) & !word & HIGH;
        if found != 0 {
            return at + n * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    special_further(bytes, at + words.len().min(SHORT) * 8)
}

/// As [`special`], for long runs and for the end of the text. Its steps compile to vector
/// instructions.
#[inline(never)]
fn special_further(bytes: &[u8], at: usize) -> usize {
    const STEP: usize = 64;
    let mut rest = bytes.get(at..).unwrap_or_default();
    while let Some((step, after)) = rest.split_first_chunk::<STEP>() {
        // No early exit, so that it is done for many bytes at once.
        if step.iter().fold(false, |any, byte| any | is_special(*byte)) {
            break;
        }
        rest = after;
    }
    let from = bytes.len() - rest.len();
    from + rest
        .iter()
        .position(|byte| is_special(*byte))
        .unwrap_or(rest.len())
}

#[inline]
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}
