//! TLS through rustls, with either version of HTTP as the client asks for it.

use std::sync::Arc;

use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mcp_channel::{Channel, Message, Reply};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::client::Client;
use crate::net::{Alive, Endpoint, Server, hyper_builder, listen, soon, telling};
use crate::support::request::{Call, served};

const VERSIONS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A server with a certificate of its own for `localhost`, and what a client needs to trust it.
fn serve(endpoint: Endpoint) -> (Server, RootCertStore) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(own.cert.der().clone()).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(vec![own.cert.der().clone()], key.into())
        .expect("a certificate and its key");
    config.alpn_protocols = VERSIONS.map(<[u8]>::to_vec).into();
    let acceptor = TlsAcceptor::from(Arc::new(config));

    let listener = listen();
    let address = listener.local_addr().expect("an address");
    let accept = async move {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let acceptor = acceptor.clone();
            let service = TowerToHyperService::new(endpoint.clone());
            connections.spawn(async move {
                let stream = acceptor.accept(stream).await.expect("a client of TLS");
                let builder = hyper_builder();
                let _ = builder
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    };
    let server = Server::new(address, tokio::spawn(accept).abort_handle());
    (server, roots)
}

async fn connect(server: &Server, roots: &RootCertStore, version: &[u8]) -> TlsStream<TcpStream> {
    let mut config = ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_root_certificates(roots.clone())
        .with_no_client_auth();
    config.alpn_protocols = vec![version.to_vec()];
    let name = ServerName::try_from("localhost").expect("a name");
    let connector = TlsConnector::from(Arc::new(config));
    let stream = soon("TLS", connector.connect(name, server.connect().await)).await;
    let stream = stream.expect("a server of TLS");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(version));
    stream
}

async fn client(server: &Server, roots: &RootCertStore, version: &[u8]) -> Client {
    let stream = connect(server, roots, version).await;
    match version {
        b"h2" => Client::http2(stream).await,
        _ => Client::http1(stream).await,
    }
}

/// A frame goes through TLS by itself, whatever buffers there are.
#[tokio::test]
async fn frames_leave_as_they_are_sent() {
    let seen = Arc::new(tokio::sync::Semaphore::new(0));
    let handlers = Arc::clone(&seen);
    let (server, roots) = serve(served(move |channel: Channel, _| {
        let seen = Arc::clone(&handlers);
        async move {
            for step in 1..=3 {
                channel.send_progress((step, 3)).await.expect("a client");
                seen.acquire().await.expect("a test").forget();
            }
            Reply::result(json!({"content": []}))
        }
    }));
    for version in VERSIONS {
        let mut client = client(&server, &roots, version).await;
        let mut messages = client.stream(&Call::tool("x").token(1)).await;
        for step in 1..=3 {
            let message = messages.next().await.expect("a frame");
            assert_eq!(message["params"]["progress"], step);
            seen.add_permits(1);
        }
        assert!(messages.next().await.expect("a result")["result"].is_object());
        assert_eq!(messages.next().await, None);
    }
}

#[tokio::test]
async fn a_reply_is_single() {
    let endpoint = served(|_, message: Message| async move {
        Reply::result(json!({"content": [], "tool": message.name()}))
    });
    let (server, roots) = serve(endpoint);
    for version in VERSIONS {
        let mut client = client(&server, &roots, version).await;
        let response = client.send(&Call::tool("x")).await;
        let reply = crate::support::request::Reply::read(response).await;
        assert_eq!(reply.json()["result"]["tool"], "x");
    }
}

/// Whether it says so or just hangs up.
#[tokio::test]
async fn a_client_that_leaves_cancels_the_handler() {
    let (tell, mut gone) = telling();
    let (server, roots) = serve(served(move |channel: Channel, _| {
        let alive = Alive(tell.clone());
        async move {
            channel.send_progress(1).await.expect("a client");
            std::future::pending::<()>().await;
            drop(alive);
            Reply::result(json!({}))
        }
    }));
    for version in VERSIONS {
        let mut client = client(&server, &roots, version).await;
        let mut messages = client.stream(&Call::tool("x").token(1)).await;
        messages.next().await.expect("the progress");
        drop((client, messages));
        gone.next("the handler's end").await;
    }

    let mut raw = crate::client::Raw::new(connect(&server, &roots, b"http/1.1").await);
    raw.send(&Call::tool("x").token(1)).await;
    assert!(raw.head().await.is_stream());
    let (tcp, _) = raw.stream.into_inner();
    drop(tcp);
    gone.next("the handler's end").await;
}
