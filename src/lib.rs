//! A Tower layer that turns any HTTP service into a Model Context Protocol endpoint.
#![forbid(unsafe_code)]

mod protocol;
