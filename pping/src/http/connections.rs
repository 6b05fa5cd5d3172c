//! A bounded number of connections, which no single client can use up.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc::UnboundedReceiver,
    task::{AbortHandle, Id, JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};

use super::{access::Access, connection, site::Site};

/// The highest number of connections.
const MAX_CONNECTIONS: usize = 64;

/// The time that responses in progress have once the server stops.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// The age from which a connection may be closed in the middle of a response, to make room.
const MIN_RESPONSE_TIME: Duration = Duration::from_secs(1);

/// The pause before looking for room again, and before accepting again after an error.
const RETRY: Duration = Duration::from_millis(50);

/// A command of the agent.
#[derive(Debug)]
pub(super) enum Command {
    /// Let clients in as this says. Read the web configuration again.
    Reload(Access),
    /// Stop serving.
    Stop,
}

/// Accepts and serves connections until [`Command::Stop`].
///
/// # Errors
/// If the listening socket cannot be used.
pub(super) async fn serve(
    listener: StdListener,
    site: Site,
    mut commands: UnboundedReceiver<Command>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let site = Arc::new(site);
    let mut connections = Connections::default();
    let mut arrival = None;
    loop {
        if let Some((stream, peer)) = arrival.take_if(|_| connections.make_room()) {
            connections.begin(stream, peer, &site);
        }
        tokio::select! {
            command = commands.recv() => match command {
                Some(Command::Reload(access)) => site.reload(access),
                Some(Command::Stop) | None => break,
            },
            accepted = listener.accept(), if arrival.is_none() => match accepted {
                Ok(accepted) => arrival = Some(accepted),
                // The client has gone, or there are no file descriptors left.
                Err(error) => {
                    tracing::debug!("a connection could not be accepted: {error}");
                    sleep(RETRY).await;
                }
            },
            () = sleep(RETRY), if arrival.is_some() => {}
            Some(ended) = connections.tasks.join_next_with_id() => connections.forget(&ended),
        }
    }
    drop(listener);
    connections.finish().await;
    Ok(())
}

/// The open connections.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    slots: HashMap<Id, OpenConnection>,
}

struct OpenConnection {
    /// The address of the client: see [`client_network`].
    client_network: IpAddr,
    since: Instant,
    /// Set from the request until the response is written.
    is_responding: Arc<AtomicBool>,
    task: AbortHandle,
}

impl OpenConnection {
    fn is_responding(&self) -> bool {
        self.is_responding.load(Ordering::Relaxed)
    }
}

impl Connections {
    /// Makes room for another connection. Returns whether there is room.
    ///
    /// If all slots are taken, it closes the oldest idle connection from the busiest address, or else the oldest that is
    /// slow to read its response, so one client cannot crowd out others.
    fn make_room(&mut self) -> bool {
        if self.slots.len() < MAX_CONNECTIONS {
            return true;
        }
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for slot in self.slots.values() {
            *counts.entry(slot.client_network).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let oldest = self
            .slots
            .iter()
            .filter(|(_, slot)| counts.get(&slot.client_network).copied() == most)
            .filter(|(_, slot)| !slot.is_responding() || slot.since.elapsed() >= MIN_RESPONSE_TIME)
            .min_by_key(|(_, slot)| (slot.is_responding(), slot.since))
            .map(|(&id, _)| id);
        let removed = oldest.and_then(|id| self.slots.remove(&id));
        if let Some(slot) = &removed {
            tracing::debug!("closed a connection from {} to make room for another", slot.client_network);
            slot.task.abort();
        }
        removed.is_some()
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr, site: &Arc<Site>) {
        let is_responding = Arc::new(AtomicBool::new(false));
        let client_network = client_network(peer.ip());
        let serving = connection::serve(stream, client_network, Arc::clone(site), Arc::clone(&is_responding));
        let task = self.tasks.spawn(serving);
        let slot = OpenConnection { client_network, since: Instant::now(), is_responding, task };
        self.slots.insert(slot.task.id(), slot);
    }

    fn forget(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.slots.remove(&id);
    }

    /// Closes idle connections, and waits for responses in progress.
    async fn finish(&mut self) {
        for slot in self.slots.values().filter(|slot| !slot.is_responding()) {
            slot.task.abort();
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        timeout(GRACE, all).await.ok();
    }
}

/// The addresses of one client: a customer commonly gets a /56 (RFC 6177, RIPE-690), and can use an address of each of its 256
/// networks. The clients in a smaller network are neighbours, who share that count as they share the line.
const CLIENT_BITS: u32 = 56;

/// Returns an IPv4 address unchanged, and an IPv6 address as its /56 network.
fn client_network(address: IpAddr) -> IpAddr {
    const HOST_BITS: u32 = Ipv6Addr::BITS - CLIENT_BITS;
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> HOST_BITS << HOST_BITS).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_customer_s_ipv6_network_are_one_client() {
        let client_network = |address: &str| client_network(address.parse().unwrap()).to_string();
        for address in ["2001:db8:0:100::1", "2001:db8:0:1ff:2:3:4:5"] {
            assert_eq!(client_network(address), "2001:db8:0:100::");
        }
        assert_eq!(client_network("2001:db8:0:200::1"), "2001:db8:0:200::");
        assert_eq!(client_network("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(client_network("192.0.2.1"), "192.0.2.1");
    }
}
