//! The parts of the `everything` example that have tests beside their code. The example itself is
//! held by the wire cases.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "the example uses what these tests do not"
)]

#[path = "../examples/everything/param_headers.rs"]
mod param_headers;
#[path = "../examples/everything/seal.rs"]
mod seal;
