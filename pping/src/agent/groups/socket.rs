//! The groups socket, and the thread that answers there.

use std::{
    fs, io,
    os::unix::{
        fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _},
        net::{UnixListener as StdListener, UnixStream as StdStream},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio::{
    net::{UnixListener, UnixStream},
    runtime::Builder,
    sync::{Semaphore, oneshot},
    time::{MissedTickBehavior, interval, sleep},
};

use super::{client, shared::Shared};
use crate::{Error, capabilities};

/// Clients at a time.
const MAX_CLIENTS: usize = 32;

/// Who may connect: the owner and the group.
const MODE: u32 = 0o660;

/// How long to wait if there are no descriptors for another client.
const NO_DESCRIPTOR: Duration = Duration::from_millis(100);

/// The groups socket.
pub(super) struct Socket {
    path: PathBuf,
    /// The device and inode of the file.
    file: (u64, u64),
    listener: Option<StdListener>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

impl Socket {
    /// Creates the socket, in place of one that a killed run left. Clients can connect, and wait for answers.
    ///
    /// # Errors
    /// [`Error::GroupsSocket`] if that is not possible: it says what to do.
    pub(super) fn bind(path: &Path) -> Result<Self, Error> {
        let refused = |reason: String| Error::GroupsSocket { path: path.to_owned(), reason };
        remove_stale(path).map_err(refused)?;
        let bound = || -> io::Result<Self> {
            let listener = StdListener::bind(path)?;
            fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
            listener.set_nonblocking(true)?;
            let file = fs::symlink_metadata(path)?;
            let file = (file.dev(), file.ino());
            Ok(Self { path: path.to_owned(), file, listener: Some(listener), running: None })
        };
        bound().map_err(|error| {
            refused(match error.kind() {
                io::ErrorKind::NotFound => {
                    "there is no such directory; make it, or give another path".to_owned()
                }
                io::ErrorKind::InvalidInput => {
                    "the path is too long for a socket (107 bytes); give a shorter one".to_owned()
                }
                _ => error.to_string(),
            })
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Starts the thread that answers.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(super) fn open(&mut self, shared: Arc<Shared>) -> io::Result<()> {
        let Some(listener) = self.listener.take() else { return Ok(()) };
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new().name("pping-groups".into()).spawn(move || {
            // Changing a map takes this one where the kernel lets only privileged users call bpf(2).
            if let Err(error) = capabilities::restrict_to(&capabilities::FOR_RUNS) {
                tracing::warn!("--groups-socket: cannot drop capabilities: {error}");
            }
            runtime.block_on(async {
                match UnixListener::from_std(listener) {
                    Ok(listener) => serve(&listener, &shared, stopped).await,
                    Err(error) => tracing::error!("--groups-socket: {error}; nothing is answered"),
                }
            });
        })?;
        self.running = Some((stop, thread));
        Ok(())
    }

    /// Ends the thread, and removes the socket.
    pub(super) fn close(mut self) {
        if let Some((stop, thread)) = self.running.take() {
            stop.send(()).ok();
            thread.join().ok();
        }
    }
}

impl Drop for Socket {
    /// Removes the file, unless another one has its path by now.
    fn drop(&mut self) {
        let file = fs::symlink_metadata(&self.path);
        if file.is_ok_and(|file| (file.dev(), file.ino()) == self.file) {
            fs::remove_file(&self.path).ok();
        }
    }
}

/// Removes a socket at which nobody listens.
fn remove_stale(path: &Path) -> Result<(), String> {
    let file = match fs::symlink_metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error.to_string()),
    };
    if !file.file_type().is_socket() {
        return Err("there is another kind of file; remove it, or give another path".to_owned());
    }
    match StdStream::connect(path) {
        Ok(_) => {
            Err("another program listens there, most likely another pping; stop it, or give another path"
                .to_owned())
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)
            .map_err(|error| format!("a killed run left it, and it cannot be removed: {error}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Answers clients until `stopped` resolves.
async fn serve(listener: &UnixListener, shared: &Arc<Shared>, mut stopped: oneshot::Receiver<()>) {
    let room = Arc::new(Semaphore::new(MAX_CLIENTS));
    let mut seconds = interval(Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            _ = seconds.tick() => shared.lock().tick(),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => admit(stream, shared, &room),
                Err(_) => sleep(NO_DESCRIPTOR).await,
            },
        }
    }
}

fn admit(stream: UnixStream, shared: &Arc<Shared>, room: &Arc<Semaphore>) {
    let shared = Arc::clone(shared);
    let Ok(place) = Arc::clone(room).try_acquire_owned() else {
        let reason = format!("there are {MAX_CLIENTS} clients already; close a connection, and try again");
        shared.lock().refuse(&reason);
        client::turn_away(&stream, &reason);
        return;
    };
    tokio::spawn(async move {
        client::answer(stream, &shared).await;
        drop(place);
    });
}
