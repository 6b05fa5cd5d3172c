//! A value that is changed without waiting for those that use it for long.

use std::{
    borrow::Borrow as _,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
};

type Change<T> = Box<dyn FnOnce(&mut T) + Send>;

/// A value behind a mutex. While another thread has it locked, changes are kept, and made before it is locked again, in
/// their order. A panic elsewhere must leave the value valid.
pub(crate) struct Deferred<T> {
    value: Mutex<T>,
    kept: Mutex<Vec<Change<T>>>,
}

impl<T> Deferred<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), kept: Mutex::default() }
    }

    /// Waits for the value, and returns it with all changes so far.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.up_to_date(self.value.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the value, now or later.
    pub(crate) fn change(&self, change: impl FnOnce(&mut T) + Send + 'static) {
        match self.try_lock() {
            Some(mut value) => change(&mut value),
            None => self.keep(change),
        }
    }

    /// Changes the value by what is given, now or later. It is copied only if that is later.
    pub(crate) fn change_by<A>(&self, given: &A, change: impl FnOnce(&mut T, &A) + Send + 'static)
    where
        A: ToOwned + ?Sized,
        A::Owned: Send + 'static,
    {
        if let Some(mut value) = self.try_lock() {
            change(&mut value, given);
        } else {
            let given = given.to_owned();
            self.keep(move |value| change(value, given.borrow()));
        }
    }

    fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(self.up_to_date(value)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.up_to_date(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn keep(&self, change: impl FnOnce(&mut T) + Send + 'static) {
        self.kept().push(Box::new(change));
    }

    fn up_to_date<'a>(&self, mut value: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let kept = std::mem::take(&mut *self.kept());
        for change in kept {
            change(&mut value);
        }
        value
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Change<T>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: fmt::Debug> fmt::Debug for Deferred<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_made_in_their_order_and_wait_for_nobody() {
        let deferred = Deferred::new(Vec::new());
        deferred.change(|value| value.push(1));
        let locked = deferred.lock();
        assert_eq!(*locked, [1]);
        // If a change waited, this thread would wait for itself.
        deferred.change_by(&[2, 3][..], |value, given| value.extend(given));
        deferred.change(|value| value.push(4));
        drop(locked);
        deferred.change(|value| value.push(5));
        assert_eq!(*deferred.lock(), [1, 2, 3, 4, 5]);
    }
}
