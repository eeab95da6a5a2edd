//! The calling side.

use core::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use prost::Message;
use tonic::{
    Request, Response, Status, Streaming,
    client::Grpc,
    codegen::{http::uri::PathAndQuery, tokio_stream::Stream},
    transport::Channel,
};

use super::codec::{Frames, Outgoing, decoded};

/// Calls the methods of one service over one channel.
#[derive(Clone, Debug)]
pub struct Client(Grpc<Channel>);

impl Client {
    /// Over this channel.
    #[must_use]
    pub fn new(channel: Channel) -> Self {
        Self(Grpc::new(channel))
    }

    /// The largest answer that is read, in bytes; 4 MiB unless it is said.
    #[must_use]
    pub fn max_decoding(self, bytes: usize) -> Self {
        Self(self.0.max_decoding_message_size(bytes))
    }

    /// The largest request that is sent, in bytes; without a bound unless it is said.
    #[must_use]
    pub fn max_encoding(self, bytes: usize) -> Self {
        Self(self.0.max_encoding_message_size(bytes))
    }

    /// Calls a method that answers with one message.
    ///
    /// # Errors
    /// The status of the node, of the connection, or of an answer that is no such message.
    pub async fn one<M, A>(&mut self, path: &'static str, request: Request<M>) -> Result<Response<A>, Status>
    where
        M: Message + 'static,
        A: Message + Default,
    {
        let (metadata, bytes, extensions) = self.asked(path, request.map(Outgoing::new)).await?.into_parts();
        Ok(Response::from_parts(metadata, decoded(bytes)?, extensions))
    }

    /// Calls a method that answers with many.
    ///
    /// # Errors
    /// The status of the node, or of the connection.
    pub async fn stream<M: Message + 'static, A>(
        &mut self,
        path: &'static str,
        request: Request<M>,
    ) -> Result<Response<Incoming<A>>, Status> {
        let answer = self.asked_for_many(path, request.map(Outgoing::new)).await?;
        Ok(answer.map(|messages| Incoming { messages, of: PhantomData }))
    }

    // Boxed, so that a method's own code is small wherever it is compiled.
    fn asked(&mut self, path: &'static str, request: Request<Outgoing>) -> Called<'_, Bytes> {
        Box::pin(async move {
            self.is_ready().await?;
            self.0.unary(request, PathAndQuery::from_static(path), Frames).await
        })
    }

    fn asked_for_many(&mut self, path: &'static str, request: Request<Outgoing>) -> Called<'_, Streaming<Bytes>> {
        Box::pin(async move {
            self.is_ready().await?;
            self.0.server_streaming(request, PathAndQuery::from_static(path), Frames).await
        })
    }

    async fn is_ready(&mut self) -> Result<(), Status> {
        self.0.ready().await.map_err(|error| Status::unknown(format!("Service was not ready: {error}")))
    }
}

type Called<'a, A> = Pin<Box<dyn Future<Output = Result<Response<A>, Status>> + Send + 'a>>;

/// The messages of an answer as they come.
#[derive(Debug)]
pub struct Incoming<A> {
    messages: Streaming<Bytes>,
    of: PhantomData<fn() -> A>,
}

impl<A: Message + Default> Incoming<A> {
    /// The next message; `None` when there are no more.
    ///
    /// # Errors
    /// The status with which the answer ended, or that of a message that is none.
    pub async fn message(&mut self) -> Result<Option<A>, Status> {
        self.messages.message().await?.map(decoded).transpose()
    }
}

impl<A: Message + Default> Stream for Incoming<A> {
    type Item = Result<A, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = Pin::new(&mut self.get_mut().messages).poll_next(cx);
        next.map(|item| item.map(|bytes| bytes.and_then(decoded)))
    }
}
