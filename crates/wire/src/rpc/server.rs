//! The serving side.

use core::{
    convert::Infallible,
    fmt,
    future::{Future, ready},
    pin::Pin,
    task::{Context, Poll},
};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message;
use tonic::{
    Request, Response, Status,
    body::Body,
    codegen::{BoxFuture, BoxStream, http, tokio_stream::Stream},
    server::{Grpc, ServerStreamingService},
};

use super::codec::{Frames, Outgoing, decoded};

/// What a method answers: one message, or many.
pub enum Answer {
    /// The message, until it is sent.
    One(Option<Outgoing>),
    /// Messages as they come.
    Many(BoxStream<Outgoing>),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::One(_) => "One",
            Self::Many(_) => "Many",
        })
    }
}

impl Stream for Answer {
    type Item = Result<Outgoing, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::One(message) => Poll::Ready(message.take().map(Ok)),
            Self::Many(messages) => messages.as_mut().poll_next(cx),
        }
    }
}

/// The answer of a method, when it is there.
pub type Reply = BoxFuture<Response<Answer>, Status>;

/// A service whose methods are numbered, whatever the types of their messages: what the generated code implements.
pub trait Dispatch: Send + Sync {
    /// Calls the method of that place in the service's list of methods.
    fn call(&self, method: usize, request: Request<Bytes>) -> Reply;
}

/// Decodes the request, calls the method, and takes its one message.
pub fn one<M, A, F>(request: Request<Bytes>, method: impl FnOnce(Request<M>) -> F + Send + 'static) -> Reply
where
    M: Message + Default + 'static,
    A: Message + 'static,
    F: Future<Output = Result<Response<A>, Status>> + Send,
{
    Box::pin(async move {
        let answer = method(parsed(request)?).await?;
        Ok(answer.map(|message| Answer::One(Some(Outgoing::new(message)))))
    })
}

/// Decodes the request, calls the method, and takes its messages as they come.
pub fn stream<M, A, F>(request: Request<Bytes>, method: impl FnOnce(Request<M>) -> F + Send + 'static) -> Reply
where
    M: Message + Default + 'static,
    A: Message + 'static,
    F: Future<Output = Result<Response<BoxStream<A>>, Status>> + Send,
{
    Box::pin(async move {
        let answer = method(parsed(request)?).await?;
        Ok(answer.map(|messages| Answer::Many(Box::pin(Sent(messages)))))
    })
}

fn parsed<M: Message + Default>(request: Request<Bytes>) -> Result<Request<M>, Status> {
    let (metadata, extensions, bytes) = request.into_parts();
    Ok(Request::from_parts(metadata, extensions, decoded(bytes)?))
}

/// Messages that can write themselves, out of messages of one type.
struct Sent<A>(BoxStream<A>);

impl<A: Message + 'static> Stream for Sent<A> {
    type Item = Result<Outgoing, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.get_mut().0.as_mut().poll_next(cx);
        next.map(|item| item.map(|message| message.map(Outgoing::new)))
    }
}

/// A service, whatever it serves.
#[derive(Clone)]
pub struct Server {
    /// Its name in paths: `package.Service`.
    name: &'static str,
    methods: &'static [&'static str],
    service: Arc<dyn Dispatch>,
    max_decoding: Option<usize>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Server {
    /// A service of this name, with these methods in the order of its numbers.
    pub fn new(name: &'static str, methods: &'static [&'static str], service: Arc<dyn Dispatch>) -> Self {
        Self { name, methods, service, max_decoding: None }
    }

    /// Its name in paths: `package.Service`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its methods' names.
    #[must_use]
    pub const fn methods(&self) -> &'static [&'static str] {
        self.methods
    }

    /// The largest message that is read, in bytes; 4 MiB unless it is said.
    pub const fn set_max_decoding(&mut self, bytes: usize) {
        self.max_decoding = Some(bytes);
    }

    /// Answers a request.
    pub fn answer(&self, request: http::Request<Body>) -> BoxFuture<http::Response<Body>, Infallible> {
        let path = request.uri().path().strip_prefix('/').and_then(|path| path.strip_prefix(self.name));
        let name = path.and_then(|path| path.strip_prefix('/'));
        let Some(method) = name.and_then(|name| self.methods.iter().position(|method| *method == name)) else {
            return Box::pin(ready(Ok(Status::unimplemented("").into_http())));
        };
        let called = Called { service: Arc::clone(&self.service), method };
        // What a node answers needs no bound: it makes the answers itself.
        let mut grpc = Grpc::new(Frames).apply_max_message_size_config(self.max_decoding, None);
        // One message is a stream of one on the wire, so this serves all methods.
        Box::pin(async move { Ok(grpc.server_streaming(called, request).await) })
    }
}

/// One call of one method.
struct Called {
    service: Arc<dyn Dispatch>,
    method: usize,
}

impl ServerStreamingService<Bytes> for Called {
    type Response = Outgoing;
    type ResponseStream = Answer;
    type Future = Reply;

    fn call(&mut self, request: Request<Bytes>) -> Reply {
        self.service.call(self.method, request)
    }
}
