//! The doors: what a caller can hold of this node, from its socket to the last byte of an answer.
//!
//! A connection is shed while its handshake is unfinished ([`theta_network::doorway`]), then bounded by who it is
//! (`connections`), and its requests are bounded by who asks (`book`): strangers share a small budget of their own, each
//! client has a quota and some places that nobody else can take. A request counts from its headers to the last byte of its
//! answer (`body`), and what makes no progress is ended (`patrol`).

mod admission;
mod body;
mod book;
mod connections;
mod incoming;
mod patrol;
mod presented;

pub(crate) use self::{
    admission::{Admission, Place},
    body::{RequestBody, ResponseBody},
    book::Bounds,
    connections::{ConnectionBounds, Connections},
    incoming::{Caller, ConnectionLimits, Entrance, accept},
    patrol::patrol,
    presented::{presented, presented_in_headers},
};
