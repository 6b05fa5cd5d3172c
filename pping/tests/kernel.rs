//! The tests of the kernel programs, until there is one binary for all integration tests.

mod it {
    mod kernel;
}
