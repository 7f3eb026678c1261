//! The HTTP side: the routes, the layers around them, and the way to the end.

use std::time::Duration;

use axum::Router;
use axum::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderName, Method};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use mcp_channel::{AllowedOrigins, McpChannelLayer, Origin, ServerInfo, Shutdown};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower_http::cors::{AllowOrigin, CorsLayer};

use crate::app::App;
use crate::args::Args;
use crate::methods;
use crate::seal::Seal;

/// How long open responses may take to end once the process was told to.
const GRACE: Duration = Duration::from_millis(1500);

type Error = Box<dyn std::error::Error>;

/// Serves until a signal ends it.
pub async fn run(args: Args) -> Result<(), Error> {
    let app = App::new(Seal::from_env()?);
    let shutdown = Shutdown::new();
    let router = router(app, &shutdown, &args)?;
    let listener = TcpListener::bind(&args.addr)
        .await
        .map_err(|why| format!("cannot listen on {}: {why}", args.addr))?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    // A frame is a small packet, and should not wait for the next one.
    let listener = listener.tap_io(|socket| {
        let _ = socket.set_nodelay(true);
    });

    let (ending, mut ended) = watch::channel(false);
    let served = axum::serve(listener, router).with_graceful_shutdown(async move {
        signal().await;
        // The graceful end waits for open responses, and those of subscriptions have no other end.
        shutdown.begin();
        ending.send_replace(true);
    });
    let overdue = async {
        if ended.wait_for(|ended| *ended).await.is_ok() {
            tokio::time::sleep(GRACE).await;
        }
    };
    tokio::select! {
        served = served.into_future() => served?,
        // Returning drops the connections, and with them the handlers that still run.
        () = overdue => {}
    }
    Ok(())
}

fn router(app: App, shutdown: &Shutdown, args: &Args) -> Result<Router, Error> {
    let page: Origin = "https://app.example.com".parse()?;
    let origins = AllowedOrigins::loopback().or(AllowedOrigins::list([page]));

    let mut mcp = McpChannelLayer::new()
        .server_info(ServerInfo::new("everything", env!("CARGO_PKG_VERSION")))
        .allowed_origins(origins.clone())
        .shutdown(shutdown);
    if let Some(interval) = args.keep_alive {
        mcp = mcp.keep_alive(interval);
    }
    if let Some(silence) = args.stream_after {
        mcp = mcp.stream_after(silence);
    }
    if args.modern_only {
        mcp = mcp.legacy_clients(false);
    }

    // The layers are on the MCP route alone. CORS is the outer one, so that a page can also read why a
    // request of its own was refused.
    Ok(Router::new()
        .route("/mcp", post(methods::handle).layer((cors(origins), mcp)))
        .route("/health", get(async || "ok\n"))
        .with_state(app))
}

/// Lets the pages that the endpoint serves send its headers and read its answers.
fn cors(origins: AllowedOrigins) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |origin, _| {
            origins.allows(origin.as_bytes())
        }))
        .allow_methods([Method::POST])
        .allow_headers([
            ACCEPT,
            AUTHORIZATION,
            CONTENT_TYPE,
            HeaderName::from_static("mcp-protocol-version"),
            HeaderName::from_static("mcp-method"),
            HeaderName::from_static("mcp-name"),
            // Pages that speak an earlier revision may send these.
            HeaderName::from_static("mcp-session-id"),
            HeaderName::from_static("last-event-id"),
            // One for each tool parameter that is mirrored; see `param_headers`.
            HeaderName::from_static("mcp-param-region"),
            HeaderName::from_static("traceparent"),
            HeaderName::from_static("tracestate"),
            HeaderName::from_static("baggage"),
        ])
        .expose_headers([
            WWW_AUTHENTICATE,
            HeaderName::from_static("mcp-protocol-version"),
        ])
        .max_age(Duration::from_secs(60 * 60))
}

/// Waits for SIGINT, or SIGTERM where there is such a thing.
async fn signal() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminated) => tokio::select! {
                _ = interrupted => {}
                _ = terminated.recv() => {}
            },
            Err(_) => {
                let _ = interrupted.await;
            }
        }
    }
    #[cfg(not(unix))]
    let _ = interrupted.await;
}
