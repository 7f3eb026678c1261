//! What reads or sets headers. Those that are set inside are lost once a stream is open: it was
//! opened before the inner response was there.

use super::*;
use axum::Router;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue, WWW_AUTHENTICATE};
use http::{Method, StatusCode};
use mcp_channel::{AllowedOrigins, McpChannelLayer, RequestBody};
use tower::{Layer, ServiceBuilder};
use tower_http::auth::AddAuthorizationLayer;
use tower_http::cors::CorsLayer;
use tower_http::normalize_path::NormalizePathLayer;
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::sensitive_headers::SetSensitiveHeadersLayer;
use tower_http::validate_request::ValidateRequestHeaderLayer;

// CORS

const PAGE: &str = "https://app.example.com";

fn cors() -> CorsLayer {
    CorsLayer::new()
        .allow_origin([PAGE.parse::<HeaderValue>().unwrap()])
        .allow_methods([Method::POST])
        .allow_headers(tower_http::cors::Any)
}

fn for_page() -> McpChannelLayer {
    McpChannelLayer::new().allowed_origins(AllowedOrigins::list([PAGE.parse().unwrap()]))
}

#[tokio::test(start_paused = true)]
async fn cors_outside_answers_preflights_and_marks_every_answer() {
    let service = ServiceBuilder::new()
        .layer(cors())
        .layer(for_page())
        .service_fn(tool);
    let preflight = Request::options("/mcp")
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "mcp-method,mcp-name,mcp-protocol-version",
        )
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = service.clone().oneshot(preflight).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["access-control-allow-origin"], PAGE);
    assert_eq!(response.headers()["access-control-allow-methods"], "POST");

    let call = |tool| Call::tool(tool).header("origin", PAGE);
    let headers = streams_for(call("stream").token(1), service.clone()).await;
    assert_eq!(headers["access-control-allow-origin"], PAGE);
    let reply = call("plain").send(service.clone()).await;
    assert_eq!(reply.headers["access-control-allow-origin"], PAGE);
    let reply = call("plain")
        .without_header("mcp-method")
        .send(service.clone())
        .await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.headers["access-control-allow-origin"], PAGE);

    // Another page is refused by the layer, and its browser is not told otherwise.
    let reply = Call::tool("plain")
        .header("origin", "https://evil.example")
        .send(service)
        .await;
    assert_eq!(reply.status, 403);
    assert!(!reply.headers.contains_key("access-control-allow-origin"));
}

#[tokio::test(start_paused = true)]
async fn cors_inside_comes_too_late() {
    let service = ServiceBuilder::new()
        .layer(for_page())
        .layer(cors())
        .service_fn(tool);
    let call = |tool| Call::tool(tool).header("origin", PAGE);
    let reply = call("plain").send(service.clone()).await;
    assert_eq!(reply.headers["access-control-allow-origin"], PAGE);
    let headers = streams_for(call("stream").token(1), service.clone()).await;
    assert!(!headers.contains_key("access-control-allow-origin"));
    let preflight = Request::options("/mcp")
        .header("origin", PAGE)
        .header("access-control-request-method", "POST")
        .body(Full::<Bytes>::default())
        .unwrap();
    let response = service.oneshot(preflight).await.unwrap();
    assert_eq!(response.status(), 405);
}

// Authorization

/// Lets in who knows the token, and asks everybody else for it.
fn check<B, R: Default>(request: &mut Request<B>) -> Result<(), Response<R>> {
    if request.headers().get(AUTHORIZATION) == Some(&HeaderValue::from_static("Bearer open")) {
        return Ok(());
    }
    let mut response = Response::new(R::default());
    *response.status_mut() = StatusCode::UNAUTHORIZED;
    let challenge =
        HeaderValue::from_static("Bearer resource_metadata=\"https://mcp.example.com\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    Err(response)
}

async fn asks_for_authorization<S, B>(service: S)
where
    S: Service<Request<Full<Bytes>>, Response = Response<B>> + Clone,
    S::Error: Debug,
    B: Body<Data = Bytes>,
    B::Error: Debug,
{
    for tool in ["plain", "stream"] {
        let reply = Call::tool(tool).token(1).send(service.clone()).await;
        assert_eq!(reply.status, 401);
        assert!(
            reply.headers[WWW_AUTHENTICATE]
                .to_str()
                .unwrap()
                .starts_with("Bearer ")
        );
        assert_eq!(reply.body, "");
    }
    streams(AddAuthorizationLayer::bearer("open").layer(service)).await;
}

#[tokio::test(start_paused = true)]
async fn a_401_keeps_its_challenge_from_outside_and_from_inside() {
    let outside = ServiceBuilder::new()
        .layer(ValidateRequestHeaderLayer::custom(check))
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    asks_for_authorization(outside).await;
    let inside = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(ValidateRequestHeaderLayer::custom(check))
        .service_fn(tool);
    asks_for_authorization(inside).await;
}

#[tokio::test(start_paused = true)]
async fn authorization_may_be_added_inside() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(AddAuthorizationLayer::bearer("open"))
        .layer(ValidateRequestHeaderLayer::custom(check))
        .service_fn(tool);
    streams(service).await;
}

// Sensitive headers

#[tokio::test(start_paused = true)]
async fn sensitive_headers_are_marked_from_outside_and_inside() {
    let handler = |request: Request<RequestBody>| {
        let sensitive = request.headers()[AUTHORIZATION].is_sensitive();
        assert!(sensitive, "the layer keeps the mark");
        tool(request)
    };
    let call = || {
        Call::tool("stream")
            .token(1)
            .header("authorization", "Bearer x")
    };
    let outside = ServiceBuilder::new()
        .layer(SetSensitiveHeadersLayer::new([AUTHORIZATION]))
        .layer(McpChannelLayer::new())
        .service_fn(handler);
    streams_for(call(), outside).await;
    let inside = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(SetSensitiveHeadersLayer::new([AUTHORIZATION]))
        .service_fn(handler);
    streams_for(call(), inside).await;
}

// Request ids

const ID: HeaderName = HeaderName::from_static("x-request-id");

#[tokio::test(start_paused = true)]
async fn request_ids_outside_are_on_every_answer() {
    let service = ServiceBuilder::new()
        .layer(SetRequestIdLayer::new(ID, MakeRequestUuid))
        .layer(PropagateRequestIdLayer::new(ID))
        .layer(McpChannelLayer::new())
        .service_fn(tool);
    assert!(streams(service.clone()).await.contains_key(ID));
    let mine = Call::tool("stream").token(1).header("x-request-id", "mine");
    assert_eq!(streams_for(mine, service.clone()).await[ID], "mine");
    for (call, status) in [
        (Call::tool("plain"), 200),
        (Call::tool("plain").without_header("mcp-name"), 400),
        (Call::notification("notifications/x"), 202),
    ] {
        let reply = call
            .header("x-request-id", "mine")
            .send(service.clone())
            .await;
        assert_eq!(reply.status, status);
        assert_eq!(reply.headers[ID], "mine");
    }
}

#[tokio::test(start_paused = true)]
async fn request_ids_inside_are_on_replies_only() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(SetRequestIdLayer::new(ID, MakeRequestUuid))
        .layer(PropagateRequestIdLayer::new(ID))
        .service_fn(tool);
    assert!(!streams(service.clone()).await.contains_key(ID));
    let reply = Call::tool("plain").send(service).await;
    assert!(reply.headers.contains_key(ID));
}

// Paths

#[tokio::test(start_paused = true)]
async fn paths_are_normalized_outside_of_a_router() {
    let endpoint =
        McpChannelLayer::new().layer(tower::service_fn(|request: Request<RequestBody>| {
            let channel: &Channel = request.extensions().get().expect("a channel");
            assert!(
                channel.endpoint().ends_with("/mcp"),
                "{}",
                channel.endpoint()
            );
            tool(request)
        }));
    let router: Router = Router::new().route_service("/mcp", endpoint);
    let mut request = Call::tool("plain").request();
    *request.uri_mut() = "http://localhost/mcp/".parse().unwrap();
    let response = router.clone().oneshot(request.clone()).await.unwrap();
    assert_eq!(response.status(), 404);

    let service = NormalizePathLayer::trim_trailing_slash().layer(router);
    let response = service.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 200);
    streams(service).await;
}

#[tokio::test(start_paused = true)]
async fn paths_may_be_normalized_inside() {
    let service = ServiceBuilder::new()
        .layer(McpChannelLayer::new())
        .layer(NormalizePathLayer::trim_trailing_slash())
        .service_fn(tool);
    streams(service).await;
}
