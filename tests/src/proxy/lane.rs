//! One way of one connection.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

use super::frames::Frames;
use super::listener::Network;
use super::rules::{Rules, Way};
use super::traffic::Request;
use super::traps::Trap;

/// What is delivered as a whole or not at all.
#[derive(Debug)]
pub(super) enum Parcel {
    Bytes(Vec<u8>),
    Request(Request, Vec<u8>),
    Dropped(Trap),
    Cut(Trap),
    End,
}

type Queue = (Instant, Parcel);

/// Carries everything from `from` to `to`, until one of them ends.
pub(super) async fn carry(
    way: Way,
    from: OwnedReadHalf,
    to: OwnedWriteHalf,
    frames: Frames,
    network: &Network,
) -> io::Result<()> {
    let (queue, parcels) = mpsc::unbounded_channel();
    let rules = network.rules.subscribe();
    let reading = collect(way, from, frames, queue, &rules);
    let writing = deliver(way, parcels, to, network, rules.clone());
    let reading = async {
        reading.await;
        Ok(())
    };
    // What cannot be delivered need not be read any more.
    tokio::try_join!(reading, writing)?;
    Ok(())
}

/// Reads on whatever the rules, as a network that is slow or silent does not stop its sender.
async fn collect(
    way: Way,
    mut from: OwnedReadHalf,
    mut frames: Frames,
    queue: mpsc::UnboundedSender<Queue>,
    rules: &watch::Receiver<Rules>,
) {
    let send = |parcel| {
        let due = Instant::now() + rules.borrow().lane(way).delay;
        // The one who delivers has failed, and with him the connection.
        let _ = queue.send((due, parcel));
    };
    let mut bytes = Vec::new();
    // A connection that was reset has ended too, and that news travels like any other.
    while from.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
        while let Some(parcel) = frames.next(&mut bytes) {
            send(parcel);
        }
    }
    send(Parcel::Bytes(bytes));
    send(Parcel::End);
}

async fn deliver(
    way: Way,
    mut parcels: mpsc::UnboundedReceiver<Queue>,
    mut to: OwnedWriteHalf,
    network: &Network,
    mut rules: watch::Receiver<Rules>,
) -> io::Result<()> {
    while let Some((due, parcel)) = parcels.recv().await {
        sleep_until(due).await;
        rules
            .wait_for(|rules| !rules.lane(way).silent)
            .await
            .map_err(io::Error::other)?;
        match parcel {
            Parcel::Bytes(bytes) => to.write_all(&bytes).await?,
            Parcel::Request(request, bytes) => {
                // Before the server can answer, so that a client with its answer finds it counted.
                network
                    .traffic
                    .send_modify(|traffic| traffic.requests.push(request));
                to.write_all(&bytes).await?;
            }
            Parcel::Dropped(trap) => trap.spring(),
            Parcel::Cut(trap) => {
                trap.spring();
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Parcel::End => return to.shutdown().await,
        }
    }
    Ok(())
}
