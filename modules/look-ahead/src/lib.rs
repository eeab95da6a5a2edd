//! Which digests will be signed next: the question of whoever signs for a name server, and the answer of whoever has a copy of its zone, over a
//! Unix socket. `spec/look-ahead.md` has the bytes, `docs/adr/0060-look-ahead.md` says what it is for.
//!
//! - [`Question`] and [`Answer`]: what is said.
//! - [`ask`]: asks once, on a connection of its own.
//! - [`serve`]: answers, for whatever is a [`Listing`].

mod ask;
mod frames;
mod serve;
mod timed;

pub use self::{
    ask::{AskError, ask, is_served},
    frames::{Answer, Digest, MOST_DIGESTS, Question},
    serve::{Listing, ServeError, Service, serve},
};
