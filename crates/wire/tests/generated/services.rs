//! Writes the code of services and clients that stands on `theta_wire::rpc`.

use std::fmt::Write;

use prost_build::{Method, Service, ServiceGenerator};

/// Services of this package stream in both directions, and are few: tonic's own code serves them.
const OF_TONIC: &str = "theta.host.v1";

pub(crate) struct Services {
    tonic: Box<dyn ServiceGenerator>,
}

impl Services {
    pub(crate) fn new() -> Self {
        Self { tonic: tonic_prost_build::configure().service_generator() }
    }
}

impl ServiceGenerator for Services {
    fn generate(&mut self, service: Service, to: &mut String) {
        if service.package == OF_TONIC {
            return self.tonic.generate(service, to);
        }
        assert!(
            service.methods.iter().all(|method| !method.client_streaming),
            "rpc::Client and rpc::Server send one request"
        );
        client(&service, to).unwrap();
        server(&service, to).unwrap();
    }
}

const HEAD: &str = "#![allow(missing_docs)]\nuse crate::rpc;\n";

/// `threshold_keys` of `ThresholdKeys`.
fn module(service: &Service) -> String {
    let mut name = String::new();
    for letter in service.name.chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.extend(letter.to_lowercase());
    }
    name
}

fn client(service: &Service, to: &mut String) -> std::fmt::Result {
    let name = &service.name;
    writeln!(to, "/// Generated client.\npub mod {}_client {{\n{HEAD}", module(service))?;
    service.comments.append_with_indent(0, to);
    writeln!(to, "#[derive(Clone, Debug)]\npub struct {name}Client(rpc::Client);\nimpl {name}Client {{")?;
    writeln!(to, "pub fn new(channel: tonic::transport::Channel) -> Self {{ Self(rpc::Client::new(channel)) }}")?;
    for way in ["decoding", "encoding"] {
        writeln!(
            to,
            "#[must_use] pub fn max_{way}_message_size(self, bytes: usize) -> Self {{ Self(self.0.max_{way}(bytes)) }}"
        )?;
    }
    for method in &service.methods {
        method.comments.append_with_indent(0, to);
        let Method { name, input_type, output_type, .. } = method;
        let (called, answer) = match method.server_streaming {
            false => ("one", format!("super::{output_type}")),
            true => ("stream", format!("rpc::Incoming<super::{output_type}>")),
        };
        writeln!(
            to,
            "pub async fn {name}(&mut self, request: impl tonic::IntoRequest<super::{input_type}>) \
             -> Result<tonic::Response<{answer}>, tonic::Status> {{ \
             self.0.{called}(\"/{}.{}/{}\", request.into_request()).await }}",
            service.package, service.proto_name, method.proto_name
        )?;
    }
    writeln!(to, "}}\n}}")
}

fn server(service: &Service, to: &mut String) -> std::fmt::Result {
    let Service { name, package, proto_name, methods, .. } = service;
    writeln!(
        to,
        "/// Generated server.\npub mod {}_server {{\n{HEAD}use tonic::codegen::{{async_trait, http, Arc, BoxFuture, Bytes, Context, Poll, Service}};\n",
        module(service)
    )?;
    writeln!(to, "/// What a [`{name}Server`] serves.\n#[async_trait]\npub trait {name}: Send + Sync + 'static {{")?;
    for method in methods {
        method.comments.append_with_indent(0, to);
        let Method { name, input_type, output_type, .. } = method;
        let answer = match method.server_streaming {
            false => format!("super::{output_type}"),
            true => format!("tonic::codegen::BoxStream<super::{output_type}>"),
        };
        writeln!(
            to,
            "async fn {name}(&self, request: tonic::Request<super::{input_type}>) \
             -> Result<tonic::Response<{answer}>, tonic::Status>;"
        )?;
    }
    writeln!(to, "}}")?;
    service.comments.append_with_indent(0, to);
    writeln!(to, "#[derive(Clone, Debug)]\npub struct {name}Server(rpc::Server);\nimpl {name}Server {{")?;
    writeln!(to, "/// The service's name in paths.\npub const NAME: &'static str = \"{package}.{proto_name}\";")?;
    let named: Vec<_> = methods.iter().map(|method| format!("\"{}\"", method.proto_name)).collect();
    writeln!(to, "/// Its methods' names.\npub const METHODS: &'static [&'static str] = &[{}];", named.join(", "))?;
    writeln!(
        to,
        "pub fn new(inner: impl {name}) -> Self {{ let calls = Calls(Arc::new(inner)); \
         Self(rpc::Server::new(Self::NAME, Self::METHODS, Arc::new(calls))) }}"
    )?;
    writeln!(to, "}}\nstruct Calls(Arc<dyn {name}>);\nimpl rpc::Dispatch for Calls {{")?;
    writeln!(to, "fn call(&self, method: usize, request: tonic::Request<Bytes>) -> rpc::Reply {{")?;
    writeln!(to, "let inner = Arc::clone(&self.0);\nmatch method {{")?;
    for (at, method) in methods.iter().enumerate() {
        let way = if method.server_streaming { "stream" } else { "one" };
        writeln!(
            to,
            "{at} => rpc::{way}(request, move |request| async move {{ inner.{}(request).await }}),",
            method.name
        )?;
    }
    writeln!(to, "_ => Box::pin(std::future::ready(Err(tonic::Status::unimplemented(\"\")))),\n}}\n}}\n}}")?;
    writeln!(
        to,
        "impl tonic::server::NamedService for {name}Server {{ const NAME: &'static str = Self::NAME; }}\n\
         impl Service<http::Request<tonic::body::Body>> for {name}Server {{\n\
         type Response = http::Response<tonic::body::Body>;\ntype Error = std::convert::Infallible;\n\
         type Future = BoxFuture<Self::Response, Self::Error>;\n\
         fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {{ Poll::Ready(Ok(())) }}\n\
         fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {{ self.0.answer(request) }}\n}}\n\
         impl From<{name}Server> for rpc::Server {{ fn from(server: {name}Server) -> Self {{ server.0 }} }}\n}}"
    )
}
