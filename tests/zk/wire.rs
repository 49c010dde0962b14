//! What no client offers: ending another's session, and forging one.

use std::io;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const CLOSE_SESSION: i32 = -11;
/// Where the session's id stands in a connect request, after its length and three fields.
const SESSION: std::ops::Range<usize> = 20..28;
const PASSWORD: std::ops::Range<usize> = 32..48;
const CONNECT_BYTES: usize = 49;

/// Ends a session of which only the id is known, as the server's own expiry does.
pub(crate) async fn close_session(server: &str, session: i64) {
    // The owner, thrown off its connection, may be faster to come back than we to close.
    while is_open(server, session).await {}
}

/// Takes the session over and closes it; false if the server does not know it any longer.
async fn is_open(server: &str, session: i64) -> bool {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let mut requests = vec![0; CONNECT_BYTES];
    requests[..4].copy_from_slice(&45_i32.to_be_bytes());
    requests[16..20].copy_from_slice(&20_000_i32.to_be_bytes());
    requests[SESSION].copy_from_slice(&session.to_be_bytes());
    requests[28..32].copy_from_slice(&16_i32.to_be_bytes());
    requests[PASSWORD].copy_from_slice(&password(session));
    requests.extend([8_i32, 1, CLOSE_SESSION].map(i32::to_be_bytes).concat());
    stream.write_all(&requests).await.unwrap();
    let mut answer = Vec::new();
    // However the server ends it: what counts is what it said before.
    let _ = stream.read_to_end(&mut answer).await;
    // To an unknown session it says zero; nothing, if its owner was back before.
    answer.get(12..20) != Some(&[0; 8])
}

/// The server makes it from the id, with Java's generator and a constant of its own.
fn password(session: i64) -> [u8; 16] {
    const MULTIPLIER: i64 = 0x5_DEEC_E66D;
    const MASK: i64 = (1 << 48) - 1;
    let mut seed = ((session ^ 0xB341_5C00) ^ MULTIPLIER) & MASK;
    let mut bytes = [0; 16];
    for word in bytes.chunks_mut(4) {
        seed = seed.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        word.copy_from_slice(&(seed >> 16).to_le_bytes()[..4]);
    }
    bytes
}

/// A server that takes back every client as a new one.
pub(crate) struct Forger {
    port: u16,
    cuts: watch::Sender<u32>,
}

impl Forger {
    pub(crate) async fn start(server: &str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = watch::Sender::new(0);
        tokio::spawn(accept(listener, server.to_owned(), cuts.subscribe()));
        Self { port, cuts }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

async fn accept(listener: TcpListener, server: String, cuts: watch::Receiver<u32>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, mut cuts) = (server.clone(), cuts.clone());
        tokio::spawn(async move {
            cuts.mark_unchanged();
            tokio::select! {
                // However it ends, the client notices.
                _ = forge(client, server) => {}
                _ = cuts.changed() => {}
            }
        });
    }
}

async fn forge(mut client: TcpStream, server: String) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    let mut connect = [0; CONNECT_BYTES];
    client.read_exact(&mut connect).await?;
    connect[SESSION].fill(0);
    connect[PASSWORD].fill(0);
    server.write_all(&connect).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
