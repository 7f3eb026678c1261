//! Guides: how to write handlers, test them, and serve them in production.
//!
//! Their code is compiled with the crate's tests, and run unless it never ends.

// Links between guides are defined twice: here for these pages, since rustdoc uses the first
// definition, and in the file for readers of a checkout.

#[doc = include_str!("../docs/answering.md")]
pub mod answering {}

#[doc = include_str!("../docs/blocking.md")]
pub mod blocking {}

#[doc = include_str!("../docs/back-pressure.md")]
pub mod back_pressure {}

/// [write-time-out]: crate::guide::back_pressure#a-write-time-out
/// [proxy]: crate::guide::proxy
///
#[doc = include_str!("../docs/disconnects.md")]
pub mod disconnects {}

#[doc = include_str!("../docs/proxy.md")]
pub mod proxy {}

/// [back-pressure]: crate::guide::back_pressure
/// [proxy]: crate::guide::proxy
///
#[doc = include_str!("../docs/deployment.md")]
pub mod deployment {}

#[doc = include_str!("../docs/subscriptions.md")]
pub mod subscriptions {}

/// [answering]: crate::guide::answering
///
#[doc = include_str!("../docs/without-axum.md")]
pub mod without_axum {}

#[doc = include_str!("../docs/testing.md")]
pub mod testing {}

#[doc = include_str!("../docs/eras.md")]
pub mod eras {}

#[doc = include_str!("../docs/protocol.md")]
pub mod protocol {}
