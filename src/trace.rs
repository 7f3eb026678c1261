//! The macros that trace failures which nobody else would see. Without the feature `tracing` they do
//! nothing.

#[cfg(feature = "tracing")]
pub(crate) use tracing::{debug, error, warn};

/// Takes what tracing's macros take here, so that what an event shows is used either way.
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
