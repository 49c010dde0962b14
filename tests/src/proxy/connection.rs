//! One client's connection to the server.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::frames::{Awaited, Frames};
use super::lane::carry;
use super::listener::Network;
use super::rules::Way;

/// Serves the client until either side has ended, or it is cut.
pub(super) async fn serve(id: u64, client: TcpStream, network: Arc<Network>) {
    let mut rules = network.rules.subscribe();
    tokio::select! {
        // Why a connection ended is told to its two ends by its end.
        _ = join(client, &network) => {}
        _ = rules.wait_for(|rules| rules.cut_up_to >= id) => {}
    }
    network.traffic.send_modify(|traffic| {
        traffic.open.remove(&id);
    });
}

async fn join(client: TcpStream, network: &Arc<Network>) -> io::Result<()> {
    let server = TcpStream::connect(network.upstream).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let awaited = Awaited::default();
    let frames = |way| Frames::new(way, network, &awaited);
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::try_join!(
        carry(
            Way::ToServer,
            from_client,
            to_server,
            frames(Way::ToServer),
            network
        ),
        carry(
            Way::ToClient,
            from_server,
            to_client,
            frames(Way::ToClient),
            network
        ),
    )?;
    Ok(())
}
