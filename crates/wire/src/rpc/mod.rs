//! What the generated services and clients stand on: everything that does not depend on a message's type, once.
//!
//! tonic's own generated code is generic: for each method it compiles reading, framing, writing and errors anew, in the crate of
//! whoever serves or calls it. Here a method's code decodes one message, calls, and encodes one; messages pass tonic as bytes.

mod client;
mod codec;
mod server;

pub use client::{Client, Incoming};
pub use codec::{Frames, Outgoing};
pub use server::{Answer, Dispatch, Reply, Server, one, stream};
