//! The socket between CometBFT and an application: length-prefixed protobuf messages, answered in their order.

use std::{io, path::Path, sync::Arc};

use bytes::{Buf as _, BytesMut};
use prost::Message as _;
use tendermint_proto::v0_38::abci::{Request, Response, ResponseException, request, response};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};

/// The longest request, in bytes: a block of CometBFT's default size and some more.
const MOST_REQUEST: usize = 32 << 20;

/// An application as CometBFT sees it. Calls come from several connections at once.
pub trait Application: Send + Sync + 'static {
    /// Answers one request. `None`: the application must not go on, and CometBFT is told so by an exception, at which it stops. Since many requests
    /// come from whoever is connected to it, that is for no request that others can make.
    fn answer(&self, request: request::Value) -> Option<response::Value>;
}

/// Serves an application on a socket of this path, which must not exist, until the future is dropped.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve(socket: &Path, application: Arc<dyn Application>) -> io::Result<()> {
    let listener = UnixListener::bind(socket)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let application = Arc::clone(&application);
        tokio::spawn(async move {
            if let Err(error) = converse(stream, &*application).await {
                tracing::warn!(%error, "a connection of CometBFT ended");
            }
        });
    }
}

async fn converse(mut stream: UnixStream, application: &dyn Application) -> io::Result<()> {
    let (mut input, mut output) = (BytesMut::with_capacity(64 << 10), BytesMut::with_capacity(64 << 10));
    loop {
        while let Some(request) = next(&mut input)? {
            let value = match request.value {
                // Blocks of this chain take milliseconds. CometBFT waits for the answer in any case.
                Some(value) => application.answer(value),
                None => None,
            };
            let response = Response { value: Some(value.unwrap_or_else(exception)) };
            response.encode_length_delimited(&mut output).map_err(io::Error::other)?;
        }
        stream.write_all(&output).await?;
        output.clear();
        if stream.read_buf(&mut input).await? == 0 {
            return Ok(());
        }
    }
}

fn exception() -> response::Value {
    let error = "the application has no answer to that, or must not go on: its log says why".to_owned();
    response::Value::Exception(ResponseException { error })
}

/// Takes the next request out of what was read; `None` if more has to be read.
fn next(input: &mut BytesMut) -> io::Result<Option<Request>> {
    // A length has at most ten bytes; the decoder needs to see that it is whole.
    let whole = input.iter().take(10).position(|byte| byte & 0x80 == 0);
    let Some(last) = whole else {
        let broken = input.len() >= 10;
        return if broken { Err(io::Error::other("a length of more than ten bytes")) } else { Ok(None) };
    };
    let prefix = last.saturating_add(1);
    let length = prost::decode_length_delimiter(input.get(..prefix).unwrap_or_default()).map_err(io::Error::other)?;
    if length > MOST_REQUEST {
        return Err(io::Error::other(format!("a request of {length} bytes")));
    }
    if input.len() < prefix.saturating_add(length) {
        input.reserve(length);
        return Ok(None);
    }
    input.advance(prefix);
    let request = Request::decode(input.split_to(length).freeze()).map_err(io::Error::other)?;
    Ok(Some(request))
}

#[cfg(test)]
mod tests {
    use tendermint_proto::v0_38::abci::RequestEcho;

    use super::*;

    #[test]
    fn requests_are_taken_whole() {
        let request =
            |message: &str| Request { value: Some(request::Value::Echo(RequestEcho { message: message.into() })) };
        let (long, short) = (request(&"x".repeat(300)), request("y"));
        let mut bytes = long.encode_length_delimited_to_vec();
        let first = bytes.len();
        bytes.extend(short.encode_length_delimited_to_vec());
        for end in 0..first {
            assert_eq!(next(&mut BytesMut::from(&bytes[..end])).unwrap(), None, "{end}");
        }
        let mut input = BytesMut::from(&bytes[..]);
        assert_eq!(next(&mut input).unwrap(), Some(long));
        assert_eq!(next(&mut input).unwrap(), Some(short));
        assert_eq!(next(&mut input).unwrap(), None);
        let mut huge = BytesMut::new();
        prost::encode_length_delimiter(MOST_REQUEST + 1, &mut huge).unwrap();
        assert!(next(&mut huge).is_err() && next(&mut BytesMut::from(&[0xff; 10][..])).is_err());
        assert!(next(&mut BytesMut::from(&[2, 0xff, 0xff][..])).is_err(), "no request");
    }
}
