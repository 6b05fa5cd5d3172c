//! Letting clients in: a bounded number, none of which can keep the others out.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener as StdListener},
    path::PathBuf,
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

use super::{GRACE, connection, site::Site};

/// How many connections there may be at once.
const CONNECTIONS: usize = 64;

/// How long an answer may take before it makes room for somebody else, if there is no other room.
const PATIENCE: Duration = Duration::from_secs(1);

/// When to look for room again, and when to accept again after the system had no room for one more.
const RETRY: Duration = Duration::from_millis(50);

/// What the agent has to say to its server.
#[derive(Debug)]
pub(super) enum Order {
    /// Read the web configuration again, from this file if from any.
    Reload(Option<PathBuf>),
    /// Finish.
    Stop,
}

/// Serves until told to stop.
///
/// # Errors
/// When the listening socket cannot be used.
pub(super) async fn serve(
    listener: StdListener,
    site: Site,
    mut orders: UnboundedReceiver<Order>,
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
            order = orders.recv() => match order {
                Some(Order::Reload(web_config)) => site.web_config.reload(web_config),
                Some(Order::Stop) | None => break,
            },
            accepted = listener.accept(), if arrival.is_none() => match accepted {
                Ok(accepted) => arrival = Some(accepted),
                // The client has gone already, or there are no file descriptors left, which will not be better at once.
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

/// Connections under way.
#[derive(Default)]
struct Connections {
    tasks: JoinSet<()>,
    slots: HashMap<Id, Slot>,
}

struct Slot {
    origin: IpAddr,
    since: Instant,
    /// Whether there was a request, and the answer is on its way.
    is_answering: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Slot {
    fn is_answering(&self) -> bool {
        self.is_answering.load(Ordering::Relaxed)
    }
}

impl Connections {
    /// Makes room for one more, and says whether there is.
    ///
    /// The one to go is from where most connections are from, so that nobody can drive others out by coming often: one
    /// that has asked for nothing yet, or else one that is slow to take its answer.
    fn make_room(&mut self) -> bool {
        if self.slots.len() < CONNECTIONS {
            return true;
        }
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        for slot in self.slots.values() {
            *counts.entry(slot.origin).or_default() += 1;
        }
        let most = counts.values().copied().max();
        let oldest = self
            .slots
            .iter()
            .filter(|(_, slot)| counts.get(&slot.origin).copied() == most)
            .filter(|(_, slot)| !slot.is_answering() || slot.since.elapsed() >= PATIENCE)
            .min_by_key(|(_, slot)| (slot.is_answering(), slot.since))
            .map(|(&id, _)| id);
        let removed = oldest.and_then(|id| self.slots.remove(&id));
        if let Some(slot) = &removed {
            tracing::debug!("dropped a connection from {}, to make room for another", slot.origin);
            slot.task.abort();
        }
        removed.is_some()
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr, site: &Arc<Site>) {
        let is_answering = Arc::new(AtomicBool::new(false));
        let task = self.tasks.spawn(connection::serve(stream, Arc::clone(site), Arc::clone(&is_answering)));
        let slot = Slot { origin: origin(peer.ip()), since: Instant::now(), is_answering, task };
        self.slots.insert(slot.task.id(), slot);
    }

    fn forget(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let id = match ended {
            Ok((id, ())) => *id,
            Err(error) => error.id(),
        };
        self.slots.remove(&id);
    }

    /// Lets answers under way finish, and nothing else.
    async fn finish(&mut self) {
        for slot in self.slots.values().filter(|slot| !slot.is_answering()) {
            slot.task.abort();
        }
        let all = async { while self.tasks.join_next().await.is_some() {} };
        timeout(GRACE, all).await.ok();
    }
}

/// Where a client is from: its address, or the network of 64 bits that one IPv6 host may have many addresses of.
fn origin(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_one_host_may_have_are_one_origin() {
        let origin = |address: &str| origin(address.parse().unwrap()).to_string();
        assert_eq!(origin("2001:db8:0:1:2:3:4:5"), "2001:db8:0:1::");
        assert_eq!(origin("::ffff:192.0.2.1"), "192.0.2.1");
        assert_eq!(origin("192.0.2.1"), "192.0.2.1");
    }
}
