//! Finding what ends a run of plain characters in a string.

/// A run that is longer than this is searched in larger steps.
const SHORT: usize = 64;

/// The first quote, backslash or control character at or after `at`; the length when there is none.
///
/// Eight bytes at a time. A borrow in the subtractions can only disturb the bytes above a match, and
/// the lowest match is the one that counts.
#[inline]
pub(crate) fn special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    let short = at.saturating_add(SHORT);
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let quote = word ^ (ONES * b'"' as u64);
        let backslash = word ^ (ONES * b'\\' as u64);
        let found = (word.wrapping_sub(ONES * 0x20) & !word)
            | (quote.wrapping_sub(ONES) & !quote)
            | (backslash.wrapping_sub(ONES) & !backslash);
        if found & HIGH != 0 {
            return at + ((found & HIGH).trailing_zeros() / 8) as usize;
        }
        at += 8;
        if at >= short {
            return special_in_long(bytes, at);
        }
    }
    while let Some(&byte) = bytes.get(at) {
        if is_special(byte) {
            break;
        }
        at += 1;
    }
    at.min(bytes.len())
}

/// As [`special`], for runs that are long: in steps that compile to vector instructions.
#[cold]
fn special_in_long(bytes: &[u8], at: usize) -> usize {
    const STEP: usize = 64;
    let mut rest = &bytes[at..];
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
