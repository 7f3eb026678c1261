//! axum: the extractors, the replies as responses, and the places where the layer may stand.

mod support;

use axum::body::Body;
use axum::error_handling::HandleErrorLayer;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use mcp_channel::{Channel, Deferred, McpChannelLayer, Message, Reply, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};
use support::request::Call;
use tower::{Layer, Service, ServiceBuilder, ServiceExt};
use tower_http::map_request_body::MapRequestBodyLayer;

fn layer() -> McpChannelLayer {
    McpChannelLayer::new()
}

/// Streams when it is asked for progress.
async fn tool(channel: Channel, message: Message) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        arguments: Value,
    }
    let Params { arguments } = message.params()?;
    if channel.progress_token().is_some() {
        // An error means that the client is gone.
        let _ = channel.send_progress((1, 1)).await;
    }
    match message.name().as_deref() {
        Some("echo") => Ok(Reply::result(
            json!({"content": [], "arguments": arguments}),
        )),
        _ => Err(RpcError::invalid_params("no such tool")),
    }
}

/// Calls the tool behind a service at a path, with a plain reply and with a stream.
async fn answers<S, B>(service: S, path: &str)
where
    S: Service<http::Request<Full<Bytes>>, Response = http::Response<B>> + Clone,
    S::Error: std::fmt::Debug,
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let call = |tool: &str| Call::tool(tool).param("arguments", json!({"a": 1}));
    for (call, events) in [
        (call("echo"), 0),
        (call("echo").token(1), 2),
        (call("other"), 0),
        (call("other").token(1), 2),
    ] {
        let mut request = call.request();
        *request.uri_mut() = format!("http://localhost{path}").parse().unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let reply = support::request::Reply::read(response).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        if events == 0 {
            reply.json();
        } else {
            assert_eq!(reply.events().len(), events);
        }
        match call.message["params"]["name"].as_str() {
            Some("echo") => assert_eq!(reply.last()["result"]["arguments"], json!({"a": 1})),
            _ => assert_eq!(reply.last()["error"]["code"], -32602),
        }
    }
}

// Where the layer may stand

#[tokio::test]
async fn on_a_method_router() {
    let router: Router = Router::new()
        .route("/mcp", post(tool).layer(layer()))
        .route("/health", get(|| async { "well" }));
    answers(router.clone(), "/mcp").await;
    assert_eq!(health(router).await, (StatusCode::OK, "well".into()));
}

async fn health(router: Router) -> (StatusCode, Bytes) {
    let request = Request::get("/health").body(Body::empty()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let (head, body) = response.into_parts();
    (head.status, body.collect().await.unwrap().to_bytes())
}

/// `post` answers other methods itself, and says what it takes.
#[tokio::test]
async fn other_methods_are_refused_wherever_the_layer_stands() {
    for router in [
        Router::new().route("/mcp", post(tool).layer(layer())),
        Router::new().route("/mcp", post(tool)).layer(layer()),
        Router::new().route("/mcp", axum::routing::any(tool).layer(layer())),
    ] {
        for method in ["GET", "DELETE", "OPTIONS"] {
            let request = Request::builder().method(method).uri("/mcp");
            let request = request.body(Body::empty()).unwrap();
            let response = Router::oneshot(router.clone(), request).await.unwrap();
            assert_eq!(response.status(), 405);
            assert_eq!(response.headers()["allow"], "POST");
        }
    }
}

/// A layer on the whole router covers everything: that is why the method router is the place.
#[tokio::test]
async fn on_a_whole_router_it_covers_the_other_routes_too() {
    let router: Router = Router::new()
        .route("/mcp", post(tool))
        .route("/health", get(|| async { "well" }))
        .layer(layer());
    answers(router.clone(), "/mcp").await;
    assert_eq!(health(router).await.0, StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn on_the_routes_so_far() {
    let router: Router = Router::new()
        .route("/mcp", post(tool))
        .route_layer(layer())
        .route("/health", get(|| async { "well" }));
    answers(router.clone(), "/mcp").await;
    assert_eq!(health(router).await, (StatusCode::OK, "well".into()));
}

#[tokio::test]
async fn around_a_router_as_a_service() {
    let router: Router = Router::new().route("/mcp", post(tool));
    answers(layer().layer(router.clone()), "/mcp").await;

    // And that again as a service of a router.
    let outer: Router = Router::new().route_service("/mcp", layer().layer(router.clone()));
    answers(outer, "/mcp").await;
    let outer: Router = Router::new().fallback_service(layer().layer(router));
    answers(outer, "/mcp").await;
}

#[tokio::test]
async fn in_a_nested_router() {
    let inner = Router::new().route("/mcp", post(tool).layer(layer()));
    answers(Router::<()>::new().nest("/api", inner), "/api/mcp").await;
    let inner = Router::new().route("/mcp", post(tool)).layer(layer());
    answers(Router::<()>::new().nest("/api", inner), "/api/mcp").await;
    let inner = Router::new().route("/mcp", post(tool));
    answers(
        Router::<()>::new().nest("/api", inner).layer(layer()),
        "/api/mcp",
    )
    .await;
    let inner = layer().layer(Router::new().route("/mcp", post(tool)));
    answers(Router::<()>::new().nest_service("/api", inner), "/api/mcp").await;
}

#[tokio::test]
async fn the_endpoint_is_the_uri_that_the_layer_saw() {
    async fn endpoint(channel: Channel) -> Reply {
        Reply::result(json!({"endpoint": channel.endpoint()}))
    }
    let inner = Router::new().route("/mcp", post(endpoint).layer(layer()));
    let router: Router = Router::new().nest("/api", inner);
    let mut request = Call::tool("x").request();
    *request.uri_mut() = "http://localhost/api/mcp?a=1".parse().unwrap();
    let response = router.oneshot(request).await.unwrap();
    let reply = support::request::Reply::read(response).await;
    let endpoint = reply.json()["result"]["endpoint"].as_str().unwrap();
    assert!(endpoint.ends_with("/mcp?a=1"), "{endpoint}");
}

#[tokio::test]
async fn in_a_service_builder_with_middleware_of_functions() {
    async fn see(request: Request, next: Next) -> Response {
        // Inside of the layer, so the message is known.
        assert!(request.extensions().get::<Message>().is_some());
        let mut response = next.run(request).await;
        response
            .headers_mut()
            .insert("x-seen", "1".parse().unwrap());
        response
    }

    // axum's own routers turn bodies into `Body`; a builder is told to.
    let service = ServiceBuilder::new()
        .layer(layer())
        .layer(MapRequestBodyLayer::new(Body::new))
        .layer(from_fn(see))
        .service(post(tool).with_state::<()>(()));
    answers(service.clone(), "/mcp").await;
    let reply = Call::tool("echo").send(service).await;
    assert_eq!(reply.headers["x-seen"], "1");

    let layers = ServiceBuilder::new()
        .layer(layer())
        .layer(MapRequestBodyLayer::new(Body::new))
        .layer(from_fn(see));
    answers(
        Router::<()>::new().route("/mcp", post(tool)).layer(layers),
        "/mcp",
    )
    .await;

    // Layer by layer it needs nothing.
    let router = Router::new().route("/mcp", post(tool));
    answers(router.layer(from_fn(see)).layer(layer()), "/mcp").await;
}

/// axum wants errors to be handled; those of inner layers go up until a stream is open.
#[tokio::test(start_paused = true)]
async fn errors_of_inner_layers_are_handled_outside() {
    async fn slow(channel: Channel) -> Reply {
        if channel.progress_token().is_some() {
            channel.send_progress(1).await.unwrap();
        }
        std::future::pending().await
    }
    let handle = HandleErrorLayer::new(|error: tower::BoxError| async move {
        assert!(error.is::<tower::timeout::error::Elapsed>());
        (StatusCode::GATEWAY_TIMEOUT, "too slow")
    });
    let layers = ServiceBuilder::new()
        .layer(handle)
        .layer(layer())
        .timeout(std::time::Duration::from_secs(5));
    let router: Router = Router::new().route("/mcp", post(slow).layer(layers));
    let reply = Call::tool("x").send(router.clone()).await;
    assert_eq!(
        (reply.status.as_u16(), &*reply.body),
        (504, &b"too slow"[..])
    );
    let reply = Call::tool("x").token(1).send(router).await;
    assert_eq!(reply.events().len(), 2);
    assert_eq!(reply.last()["error"]["code"], -32603);
}

// State and other extractors

#[tokio::test]
async fn state_and_extensions_are_there() {
    #[derive(Clone)]
    struct Greeting(&'static str);
    #[derive(Clone)]
    struct User(&'static str);

    async fn greet(
        State(Greeting(greeting)): State<Greeting>,
        Extension(User(user)): Extension<User>,
        headers: HeaderMap,
        channel: Channel,
    ) -> Reply {
        assert_eq!(channel.value::<User>().map(|user| user.0), Some(user));
        assert_eq!(headers["mcp-method"], "tools/call");
        Reply::result(json!({"content": [], "text": format!("{greeting}, {user}")}))
    }

    let router = Router::new()
        .route("/mcp", post(greet).layer(layer().copy_value::<User>()))
        .layer(Extension(User("you")))
        .with_state(Greeting("hello"));
    let reply = Call::tool("x").send(router).await;
    assert_eq!(reply.json()["result"]["text"], "hello, you");
}

#[tokio::test]
async fn the_body_is_there_for_extractors_that_read_it() {
    async fn as_bytes(message: Message, body: Bytes) -> Reply {
        assert_eq!(body, message.body());
        Reply::result(json!({"length": body.len()}))
    }
    async fn as_json(Json(body): Json<Value>) -> Reply {
        assert_eq!(body["method"], "tools/call");
        Reply::result(json!({"length": body.to_string().len()}))
    }
    let call = Call::tool("x");
    let length = call.message.to_string().len();
    for handler in [post(as_bytes), post(as_json)] {
        let router: Router = Router::new().route("/mcp", handler.layer(layer()));
        let reply = call.send(router).await;
        assert_eq!(reply.json()["result"]["length"], length);
    }
}

/// axum's extractors have a limit of their own; `Message` has the layer's alone.
#[tokio::test]
async fn axums_limit_of_two_mebibytes_holds_for_its_own_extractors() {
    async fn own(_: Bytes) -> Reply {
        Reply::result(json!({"content": []}))
    }
    async fn theirs(message: Message) -> Reply {
        assert!(message.body().len() > 2 * 1024 * 1024);
        Reply::result(json!({"content": []}))
    }
    let call = Call::tool("x").param("pad", "x".repeat(2 * 1024 * 1024));
    let status = async |handler: axum::routing::MethodRouter| {
        call.send(Router::<()>::new().route("/mcp", handler))
            .await
            .status
    };
    assert_eq!(status(post(own).layer(layer())).await, 413);
    assert_eq!(status(post(theirs).layer(layer())).await, 200);
    for limit in [
        DefaultBodyLimit::max(3 * 1024 * 1024),
        DefaultBodyLimit::disable(),
    ] {
        let layers = ServiceBuilder::new().layer(layer()).layer(limit);
        assert_eq!(status(post(own).layer(layers)).await, 200);
    }
    // And the layer's holds whatever axum's is.
    assert_eq!(
        status(post(theirs).layer(layer().body_limit(1000))).await,
        413
    );
}

// Without the layer

#[tokio::test]
async fn an_extractor_without_the_layer_says_what_to_add() {
    async fn channel(_: Channel) {}
    async fn message(_: Message) {}
    for (handler, what) in [(post(channel), "Channel"), (post(message), "Message")] {
        let reply = Call::tool("x")
            .send(Router::<()>::new().route("/mcp", handler))
            .await;
        assert_eq!(reply.status, 500);
        let text = String::from_utf8_lossy(&reply.body);
        assert_eq!(
            text,
            format!(
                "no {what} in the request: add mcp_channel::McpChannelLayer to this route, as in \
                 `post(handler).layer(McpChannelLayer::new())`"
            )
        );
    }
}

#[tokio::test]
async fn a_reply_without_the_layer_says_what_to_add() {
    for response in [
        Reply::result(json!({})).into_response(),
        Deferred.into_response(),
        RpcError::internal("x").into_response(),
    ] {
        assert_eq!(response.status(), 500);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("McpChannelLayer"));
    }
}

// What handlers return

async fn send(handler: axum::routing::MethodRouter, call: Call) -> support::request::Reply {
    call.send(Router::<()>::new().route("/mcp", handler.layer(layer())))
        .await
}

#[tokio::test]
async fn a_reply_and_an_error_are_responses() {
    let reply = send(
        post(|| async { Reply::result(json!({"a": 1})) }),
        Call::tool("x"),
    )
    .await;
    assert_eq!(reply.json()["result"]["a"], 1);
    let reply = send(
        post(|| async { Reply::error(RpcError::method_not_found("x")) }),
        Call::tool("x"),
    )
    .await;
    assert_eq!(reply.status, 404);
    assert_eq!(reply.json()["error"]["code"], -32601);
    let reply = send(
        post(|| async { RpcError::new(-32000, "mine") }),
        Call::tool("x"),
    )
    .await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.json()["error"]["message"], "mine");
}

#[tokio::test]
async fn deferred_is_a_response() {
    async fn later(channel: Channel) -> Deferred {
        tokio::spawn(async move {
            tokio::task::yield_now().await;
            channel.send_progress(1).await.unwrap();
            channel.send_result(json!({"content": []})).unwrap();
        });
        Deferred
    }
    let reply = send(post(later), Call::tool("x").token(1)).await;
    assert_eq!(reply.events().len(), 2);
    assert!(reply.last()["result"].is_object());
}

#[tokio::test]
async fn headers_go_with_a_reply_that_is_single() {
    async fn with_headers(channel: Channel) -> (HeaderMap, Reply) {
        let mut headers = HeaderMap::new();
        headers.insert("x-mine", "1".parse().unwrap());
        headers.insert("content-type", "text/plain".parse().unwrap());
        if channel.progress_token().is_some() {
            channel.start_stream().unwrap();
        }
        (headers, Reply::result(json!({"content": []})))
    }
    let reply = send(post(with_headers), Call::tool("x")).await;
    assert_eq!(reply.headers["x-mine"], "1");
    assert_eq!(reply.headers["content-type"], "application/json");
    assert_eq!(reply.json()["id"], 1);

    // The head of a stream is out before they are known.
    let reply = send(post(with_headers), Call::tool("x").token(1)).await;
    assert!(!reply.headers.contains_key("x-mine"));
    assert_eq!(reply.events().len(), 1);
}

/// The reply says its status itself, so one that is set beside it does nothing.
#[tokio::test]
async fn a_status_beside_a_reply_is_not_its_status() {
    let handler = || async { (StatusCode::IM_A_TEAPOT, Reply::result(json!({}))) };
    assert_eq!(send(post(handler), Call::tool("x")).await.status, 200);
}

#[tokio::test]
async fn anything_else_passes_untouched() {
    let handler = || async {
        (
            StatusCode::IM_A_TEAPOT,
            [("x-mine", "1")],
            "short and stout",
        )
    };
    let reply = send(post(handler), Call::tool("x")).await;
    assert_eq!(reply.status, 418);
    assert_eq!(reply.headers["x-mine"], "1");
    assert_eq!(reply.body, "short and stout");
}

/// A rejection of axum's passes as it is, and after a stream was opened it is our failure.
#[tokio::test]
async fn a_rejection_of_another_extractor_passes() {
    async fn picky(
        channel: Channel,
        body: Result<Json<u8>, axum::extract::rejection::JsonRejection>,
    ) -> Response {
        if channel.progress_token().is_some() {
            channel.start_stream().unwrap();
        }
        body.unwrap_err().into_response()
    }
    let reply = send(post(picky), Call::tool("x")).await;
    assert_eq!(reply.status, 422);
    let reply = send(post(picky), Call::tool("x").token(1)).await;
    assert_eq!(reply.last()["error"]["code"], -32603);
}

#[tokio::test]
async fn a_notification_reaches_its_handler_and_is_accepted() {
    async fn note(message: Message) -> Result<Reply, RpcError> {
        assert!(message.is_notification());
        Err(RpcError::method_not_found(message.method()))
    }
    let reply = send(post(note), Call::notification("notifications/x")).await;
    assert_eq!(reply.status, 202);
    assert_eq!(reply.body, "");
}
