//! Bounds on what a caller can hold of this node, from its socket to the last byte of an answer.
//!
//! The number of unfinished handshakes is bounded ([`theta_network::doorway`]), that of connections by their client
//! (`connections`), and that of requests by their caller (`book`): strangers share a small budget of their own, and each
//! client has a quota with some places reserved for it. A request counts from its headers to the last byte of its answer
//! (`body`), and is ended if it makes no progress (`patrol`).

mod admission;
mod answers;
mod body;
mod book;
mod connections;
mod incoming;
mod patrol;
mod presented;
mod proofs;

pub(crate) use self::{
    admission::{Admission, Place},
    answers::Answers,
    body::{RequestBody, ResponseBody},
    book::Bounds,
    connections::{ConnectionBounds, Connections},
    incoming::{Caller, ConnectionLimits, Entrance, accept},
    patrol::patrol,
    presented::{TokenCheck, presented},
};
