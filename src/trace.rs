//! The macros that trace failures which would otherwise go unnoticed. Without the feature `tracing`
//! they do nothing.

#[cfg(feature = "tracing")]
pub(crate) use tracing::{debug, error, warn};

/// Takes the same arguments as tracing's macros do here, so that they count as used with and
/// without the feature.
#[cfg(not(feature = "tracing"))]
macro_rules! nothing {
    ($message:literal $(,)?) => {};
    (% $field:ident, $($rest:tt)+) => {{
        let _ = &$field;
        $crate::trace::nothing!($($rest)+);
    }};
    ($field:ident = % $value:expr, $($rest:tt)+) => {{
        let _ = &$value;
        $crate::trace::nothing!($($rest)+);
    }};
    ($field:ident = $value:expr, $($rest:tt)+) => {{
        let _ = &$value;
        $crate::trace::nothing!($($rest)+);
    }};
    ($field:ident, $($rest:tt)+) => {{
        let _ = &$field;
        $crate::trace::nothing!($($rest)+);
    }};
}
#[cfg(not(feature = "tracing"))]
pub(crate) use {nothing, nothing as debug, nothing as error, nothing as warn};
