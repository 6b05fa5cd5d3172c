//! What came by the socket in an earlier run.

use std::{
    env,
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
};

use super::state::State;
use crate::{
    Error,
    groups::{
        journal::{self, Damage, Journal},
        protocol::Request,
    },
    spelling::counted,
};

/// The variable in which systemd names the directories of `StateDirectory=`.
const STATE_DIRECTORY: &str = "STATE_DIRECTORY";

/// Repeats what came by the socket in an earlier run, and keeps what comes from now on. A damaged file does not end pping: the log
/// says what is wrong.
///
/// # Errors
/// If another pping keeps its groups in the file.
pub(super) fn restore(state: &mut State, given: Option<&Path>, socket: &Path) -> Result<(), Error> {
    let path = given.map(Path::to_owned).or_else(|| default_path(&env::var_os(STATE_DIRECTORY)?, socket));
    let Some(path) = path else {
        tracing::warn!(
            "--groups-socket: what comes by it is forgotten when pping stops; name a file to keep it with --groups-state"
        );
        return Ok(());
    };
    let lock = journal::lock(&path).map_err(|_| Error::GroupsState(path.clone()))?;
    match journal::read(&path) {
        Ok((requests, damage)) => {
            let is_readable = damage.is_none_or(|damage| say(&path, &damage, requests.len()));
            if is_readable {
                repeat(state, &path, &requests);
            }
        }
        Err(error) => {
            tracing::error!(
                "--groups-state {}: {error}; pping goes on without it, and keeps nothing that comes by --groups-socket",
                path.display()
            );
            return Ok(());
        }
    }
    state.keep(|overlay, labels| match Journal::start(path.clone(), lock, overlay, labels) {
        Ok(journal) => Some(journal),
        Err(error) => {
            tracing::error!("--groups-state {}: {error}; nothing is kept", path.display());
            None
        }
    });
    Ok(())
}

fn repeat(state: &mut State, path: &Path, requests: &[Request]) {
    let refused = state.repeat(requests);
    if refused > 0 {
        tracing::warn!("--groups-state {}: {refused} changes in it had no effect", path.display());
    }
    let prefixes = state.overlay().len();
    if prefixes > 0 {
        let prefixes = counted(prefixes, "prefix", "prefixes");
        tracing::info!("--groups-state {}: {prefixes} from the socket", path.display());
    }
}

/// Logs what is wrong with a file, and puts it aside. Returns whether what was read of it is used.
fn say(path: &Path, damage: &Damage, requests: usize) -> bool {
    let shown = path.display();
    let put_aside = || {
        let aside = journal::put_aside(path);
        aside.map_or_else(
            |error| format!("and cannot be renamed: {error}"),
            |aside| format!("and is now {}", aside.display()),
        )
    };
    match damage {
        Damage::CutOff => {
            tracing::warn!(
                "--groups-state {shown}: the last change was not written to its end, and is left out"
            );
            true
        }
        Damage::End { line, reason } => {
            let aside = put_aside();
            tracing::error!(
                "--groups-state {shown}: it is damaged from line {line} on ({reason}), {aside}; the {requests} changes before \
                 that are used"
            );
            true
        }
        Damage::Middle { line, reason } => {
            let aside = put_aside();
            tracing::error!(
                "--groups-state {shown}: it is damaged at line {line} ({reason}), {aside}; nothing of it is used, because what \
                 is missing may have moved any prefix: let the sources send their prefixes again"
            );
            false
        }
        Damage::Foreign => {
            let aside = put_aside();
            tracing::error!(
                "--groups-state {shown}: it is another kind of file, {aside}; pping begins a new one"
            );
            false
        }
    }
}

/// The file in the service's directory of state. Several services may share that, but not a socket.
fn default_path(directories: &OsStr, socket: &Path) -> Option<PathBuf> {
    let directory = env::split_paths(directories).next().filter(|path| !path.as_os_str().is_empty())?;
    let socket = std::path::absolute(socket).unwrap_or_else(|_: io::Error| socket.to_owned());
    let name = socket.to_string_lossy().trim_start_matches('/').replace('/', "-");
    Some(directory.join(format!("{name}.journal")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_that_share_a_directory_have_their_own_files() {
        let path = |directories: &str, socket: &str| default_path(directories.as_ref(), Path::new(socket));
        let expected = "/var/lib/pping/run-pping-groups-wan-groups.sock.journal";
        assert_eq!(path("/var/lib/pping", "/run/pping-groups/wan/groups.sock"), Some(expected.into()));
        assert_eq!(
            path("/var/lib/pping:/var/lib/other", "/a").unwrap().parent(),
            Some(Path::new("/var/lib/pping"))
        );
        assert_eq!(path("", "/a"), None);
    }
}
