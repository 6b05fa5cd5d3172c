//! Loading programs again if loading is interrupted.

use std::io::ErrorKind;

use aya::programs::ProgramError;

/// Attempts to load a program that is interrupted, as many as libbpf makes.
const LOAD_ATTEMPTS: u32 = 5;

/// Loads again while loading is interrupted. Signals are held back, but a process that is stopped, frozen or traced is
/// interrupted all the same. The verifier then gives up with `EAGAIN`, which says nothing about the program.
pub(super) fn retry_interrupted(
    mut load: impl FnMut() -> Result<(), ProgramError>,
) -> Result<(), ProgramError> {
    for _ in 1..LOAD_ATTEMPTS {
        match load() {
            Err(ProgramError::LoadError { io_error, .. }) if io_error.kind() == ErrorKind::WouldBlock => {}
            result => return result,
        }
    }
    load()
}
