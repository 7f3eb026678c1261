//! Events for what would otherwise vanish; nothing without the feature `tracing`.

#[cfg(feature = "tracing")]
pub(crate) use tracing::{debug, error};

#[cfg(not(feature = "tracing"))]
macro_rules! nothing {
    ($($field:ident = $value:expr,)* $message:literal) => {{
        $( let _ = &$value; )*
    }};
}
#[cfg(not(feature = "tracing"))]
pub(crate) use {nothing as debug, nothing as error};
