//! The protocol itself: bytes in, values or bytes out.
