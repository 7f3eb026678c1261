//! JSON text: finds where the values of a text lie, and writes values as text.
//!
//! Nothing here builds a tree. This room imports from no other.

pub(crate) mod encode;
pub(crate) mod quote;
pub(crate) mod raw;
mod scanner;
pub(crate) mod scratch;
mod search;
mod value;

pub(crate) use scanner::{Scanner, Stop, scan};
pub(crate) use value::{JsonError, Kind, MAX_LENGTH, Span, Text, Value};
