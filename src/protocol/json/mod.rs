//! JSON text: a text in; where its values lie, or an error, out. And values in; their text out.
//!
//! Nothing here builds a tree. Imports from no other room.

pub(crate) mod encode;
pub(crate) mod quote;
pub(crate) mod raw;
mod scanner;
pub(crate) mod scratch;
mod search;
mod value;

pub(crate) use scanner::{Scanner, Stop, scan};
pub(crate) use value::{JsonError, Kind, MAX_LENGTH, Span, Text, Value};
