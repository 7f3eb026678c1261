//! The main job, seen from both ends of a socket: four exchanges, and how long each thing took.
//!
//! ```text
//! cargo run --example quickstart             shows four exchanges and ends
//! cargo run --example quickstart -- --serve  stays up, for a client of yours
//! ```

use std::error::Error;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use mcp_channel::{AllowedHosts, Channel, LogLevel, McpChannelLayer, Message, Reply, RpcError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep, timeout};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

// ---------------------------------------------------------------------------------------------
// The server: one function is all of it.

const DISHES: [&str; 3] = ["soup", "curry", "cake"];
const PER_DISH: Duration = Duration::from_millis(250);

async fn cook(
    State(gone): State<UnboundedSender<Instant>>,
    channel: Channel,
    message: Message,
) -> Result<Reply, RpcError> {
    #[derive(Deserialize)]
    struct Order {
        guests: u32,
    }
    match (message.method(), message.name().as_deref()) {
        ("tools/call", Some("cook")) => {}
        ("tools/call", Some(tool)) => return Err(RpcError::unknown_tool(tool)),
        (method, _) => return Err(RpcError::method_not_found(method)),
    }
    let Order { guests } = message.arguments()?;

    let noticing = Noticing(Some(gone));
    for (n, dish) in DISHES.iter().enumerate() {
        // What the client does not want is not sent, and is no reason to stop.
        let _ = channel.send_progress((n + 1, DISHES.len(), *dish)).await;
        let _ = channel
            .send_log(LogLevel::Info, format!("the {dish} is on"))
            .await;
        sleep(PER_DISH).await;
    }
    noticing.done();
    Ok(Reply::result(json!({
        "content": [{"type": "text", "text": format!("Dinner for {guests} is served.")}],
    })))
}

/// Tells when a handler is dropped before its end.
struct Noticing(Option<UnboundedSender<Instant>>);

impl Noticing {
    fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Noticing {
    fn drop(&mut self) {
        if let Some(gone) = &self.0 {
            let _ = gone.send(Instant::now());
        }
    }
}

fn router(gone: UnboundedSender<Instant>) -> Router {
    let layer = McpChannelLayer::new().allowed_hosts(AllowedHosts::loopback());
    Router::new()
        .route("/mcp", post(cook).layer(layer))
        .with_state(gone)
}

// ---------------------------------------------------------------------------------------------
// The show.

#[tokio::main]
async fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        [] => show().await,
        ["--serve"] => serve().await,
        _ => {
            eprintln!("usage: quickstart [--serve]");
            return ExitCode::from(2);
        }
    };
    if let Err(why) = ended {
        eprintln!("\nNot as it should be: {why}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn show() -> Result<()> {
    let (gone, mut noticed) = unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    tokio::spawn(async move { axum::serve(listener, router(gone)).await });
    println!("An axum handler behind McpChannelLayer, on http://{address}/mcp");
    println!("`>` is sent, `<` received, in ms since the request was sent");

    title("1  A client that asks for no progress and no logs: one JSON reply");
    let mut client = Client::send(&address, "", "cook", "").await?;
    let reply = client.json().await?;
    expect(client.is("200 OK", "application/json"), "a JSON reply")?;
    expect(reply["result"]["content"].is_array(), "a result")?;

    title("2  The same call with two keys more in `_meta`: a stream, frame by frame");
    println!(
        "          `progressToken` asks for progress, `io.modelcontextprotocol/logLevel` for logs"
    );
    let mut client = Client::send(&address, LIVE, "cook", "").await?;
    expect(client.is("200 OK", "text/event-stream"), "a stream")?;
    let mut frames = Vec::new();
    while let Some(frame) = client.frame().await? {
        frames.push(frame);
    }
    let progress = |(_, frame): &&(_, Value)| frame["method"] == "notifications/progress";
    let reports = frames.iter().filter(progress).count();
    let time = |frame: Option<&(Duration, _)>| frame.map_or(Duration::ZERO, |(time, _)| *time);
    let lasted = time(frames.last()).saturating_sub(time(frames.first()));
    expect(reports == DISHES.len(), "progress for each dish")?;
    expect(frames.len() == 2 * reports + 1, "logs and a result")?;
    expect(lasted > PER_DISH, "each frame when it was sent")?;
    println!(
        "          ({} bytes)\n\n{} frames. The first came {} before the last: nothing was held back.",
        client.received,
        frames.len(),
        ms(lasted)
    );

    title("3  A request that contradicts itself: refused, with the reason, before any handler");
    let mut client = Client::send(&address, "", "bake", "(as in 1, but Mcp-Name: bake)").await?;
    let reply = client.json().await?;
    expect(client.is("400 Bad Request", "application/json"), "a 400")?;
    expect(reply["error"]["code"] == -32020, "a header mismatch")?;

    title("4  A client that hangs up: the handler is dropped where it waits");
    let mut client = Client::send(&address, LIVE, "cook", "(as in 2)").await?;
    client.frame().await?.ok_or("the stream ended early")?;
    let hung_up = Instant::now();
    let received = client.received;
    drop(client);
    println!("          (the client hangs up after {received} bytes)");
    let later = ms(notice(&mut noticed).await? - hung_up);
    println!("The handler noticed {later} later, with two dishes to go.");

    println!("\nAll as it should be. Try it with a client of yours:");
    println!("    cargo run --example quickstart -- --serve");
    Ok(())
}

async fn notice(noticed: &mut UnboundedReceiver<Instant>) -> Result<Instant> {
    let noticed = timeout(PER_DISH, noticed.recv()).await;
    Ok(noticed
        .map_err(|_| "the handler did not notice that the client hung up")?
        .ok_or("the server is gone")?)
}

async fn serve() -> Result<()> {
    let (gone, mut noticed) = unbounded_channel();
    let listener = match TcpListener::bind("127.0.0.1:3000").await {
        Ok(listener) => listener,
        Err(why) => {
            println!("127.0.0.1:3000 is not to be had ({why}), so it is another port:");
            TcpListener::bind("127.0.0.1:0").await?
        }
    };
    let address = listener.local_addr()?;
    println!("Serving on http://{address}/mcp until ctrl-c. Watch the frames come in:\n");
    println!("curl -N http://{address}/mcp \\");
    for (name, value) in HEADERS {
        println!("  -H '{name}: {value}' \\");
    }
    println!("  -d '{}'\n", body(LIVE));
    tokio::spawn(async move {
        while noticed.recv().await.is_some() {
            println!("a client hung up, and its handler was dropped");
        }
    });
    tokio::select! {
        served = axum::serve(listener, router(gone)).into_future() => Ok(served?),
        interrupted = tokio::signal::ctrl_c() => Ok(interrupted?),
    }
}

// ---------------------------------------------------------------------------------------------
// The client: bytes on a socket.

const HEADERS: [(&str, &str); 5] = [
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
    ("MCP-Protocol-Version", "2026-07-28"),
    ("Mcp-Method", "tools/call"),
    ("Mcp-Name", "cook"),
];

/// What asks for progress and log records, in the `_meta` of a request.
const LIVE: &str = r#","progressToken":"dinner","io.modelcontextprotocol/logLevel":"info""#;

/// A call of the tool; `meta` adds to what every request says in its `_meta`.
fn body(meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"cook","arguments":{{"guests":4}},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    )
}

/// The request as it goes out. `name` is what its `Mcp-Name` header says.
fn request(address: &str, meta: &str, name: &str) -> String {
    let body = body(meta);
    let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\n");
    for (header, value) in HEADERS {
        let value = if header == "Mcp-Name" { name } else { value };
        head += &format!("{header}: {value}\r\n");
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// One exchange. Everything that passes is printed.
struct Client {
    socket: TcpStream,
    /// When the request was sent.
    started: Instant,
    /// When the newest bytes came, and how many came in all.
    arrived: Instant,
    received: usize,
    head: String,
    /// What has come and was not looked at yet.
    unread: Vec<u8>,
    /// What of it is the stream.
    body: Vec<u8>,
}

impl Client {
    /// Sends the request, and reads the head of the response. `in_short` is printed in place of
    /// what was seen before.
    async fn send(address: &str, meta: &str, name: &str, in_short: &str) -> Result<Self> {
        let request = request(address, meta, name);
        let mut socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        let started = Instant::now();
        socket.write_all(request.as_bytes()).await?;
        let shown = if in_short.is_empty() {
            &request
        } else {
            in_short
        };
        for line in shown.lines() {
            println!("{} {line}", paint("36", "          >"));
        }
        println!("          ({} bytes)\n", request.len());
        let mut client = Self {
            socket,
            started,
            arrived: started,
            received: 0,
            head: String::new(),
            unread: Vec::new(),
            body: Vec::new(),
        };
        client.head = client.until(b"\r\n\r\n").await?.ok_or("no response")?;
        client.print(&client.head);
        Ok(client)
    }

    fn is(&self, status: &str, content_type: &str) -> bool {
        self.head.starts_with(&format!("HTTP/1.1 {status}\r\n"))
            && self.header("content-type") == Some(content_type)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let (_, value) = lines.find(|(header, _)| header.eq_ignore_ascii_case(name))?;
        Some(value)
    }

    /// The one JSON reply.
    async fn json(&mut self) -> Result<Value> {
        let length = self.header("content-length").ok_or("no Content-Length")?;
        let length = length.parse()?;
        while self.unread.len() < length {
            if !self.more().await? {
                return Err("the reply was cut off".into());
            }
        }
        let text = String::from_utf8(self.unread.drain(..length).collect())?;
        self.print(&text);
        println!("          ({} bytes)", self.received);
        Ok(serde_json::from_str(&text)?)
    }

    /// The next frame of the stream, and when it came. `None` at its end.
    async fn frame(&mut self) -> Result<Option<(Duration, Value)>> {
        let end = loop {
            let mut windows = self.body.windows(2);
            if let Some(end) = windows.position(|window| window == b"\n\n") {
                break end + 2;
            }
            if !self.chunk().await? {
                self.print("the end of the stream");
                return Ok(None);
            }
        };
        let frame = String::from_utf8(self.body.drain(..end).collect())?;
        self.print(&frame);
        println!();
        let data = frame
            .strip_prefix("event: message\ndata: ")
            .ok_or("a frame has another form")?;
        Ok(Some((self.started.elapsed(), serde_json::from_str(data)?)))
    }

    /// Reads a chunk of the body, in HTTP/1.1's coding for what has no known length. False at the
    /// end.
    async fn chunk(&mut self) -> Result<bool> {
        let size = self.until(b"\r\n").await?.ok_or("the stream was cut off")?;
        let size = usize::from_str_radix(size.trim_end(), 16)?;
        while self.unread.len() < size + 2 {
            if !self.more().await? {
                return Err("the stream was cut off".into());
            }
        }
        self.body.extend(self.unread.drain(..size));
        self.unread.drain(..2);
        Ok(size > 0)
    }

    /// The text up to and with `end`; `None` when the connection ends before.
    async fn until(&mut self, end: &[u8]) -> Result<Option<String>> {
        loop {
            let mut windows = self.unread.windows(end.len());
            if let Some(found) = windows.position(|window| window == end) {
                let text = self.unread.drain(..found + end.len()).collect();
                return Ok(Some(String::from_utf8(text)?));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads on. False at the end; an error when nothing comes.
    async fn more(&mut self) -> Result<bool> {
        let read = self.socket.read_buf(&mut self.unread);
        let read = timeout(Duration::from_secs(5), read).await;
        let read = read.map_err(|_| "nothing came for 5 seconds")??;
        self.arrived = Instant::now();
        self.received += read;
        Ok(read > 0)
    }

    fn print(&self, text: &str) {
        let time = paint("32", &format!("{:>9} <", ms(self.arrived - self.started)));
        for line in text.trim_end().lines() {
            println!("{time} {line}");
        }
    }
}

fn expect(holds: bool, what: &str) -> Result<()> {
    if holds {
        return Ok(());
    }
    Err(format!("expected {what}").into())
}

fn title(text: &str) {
    println!("\n{}", paint("1", text));
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// Colour, where somebody sees it.
fn paint(code: &str, text: &str) -> String {
    if std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}
