// A reference host: it carries the frames of one node to the hosts of the other nodes, and theirs to it (spec/carriers.md). Its own network is plain TCP, which
// proves nothing and keeps nothing secret: a host is not trusted. Frames for which there is no room are dropped, as a host may do.
//
//	p2p-host -node 1 -node-key 5d3a… -listen 127.0.0.1:7301 -network 127.0.0.1:7401 -hosts 2=127.0.0.1:7402,3=127.0.0.1:7403
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "p2phost/hostv1"
)

const (
	version    = 1
	frameBytes = 64 << 10
	waiting    = 1024 // frames that wait for one peer, or for the node
	batch      = 32   // frames of one message to the node
)

type host struct {
	pb.UnimplementedMessageHostServer
	node   uint32
	toNode chan *pb.Frame
	toHost map[uint32]chan []byte
	mutex  sync.Mutex
	leave  chan struct{} // closed when the node attaches again
}

// Attach serves the node: first it says who it is, then frames go both ways until one of the two ends the stream.
func (h *host) Attach(stream grpc.BidiStreamingServer[pb.FromNode, pb.ToNode]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	hello := first.GetHello()
	if hello == nil || hello.Node != h.node {
		return status.Errorf(codes.PermissionDenied, "this is the host of node %d", h.node)
	}
	welcome := &pb.ToNode{Word: &pb.ToNode_Welcome{Welcome: &pb.Welcome{Version: version, FrameBytes: frameBytes}}}
	if err := stream.Send(welcome); err != nil || hello.Version != version {
		return err
	}
	h.mutex.Lock()
	close(h.leave)
	leave := make(chan struct{})
	h.leave = leave
	h.mutex.Unlock()
	log.Printf("node %d of the group %q is attached", hello.Node, hello.Group)
	ended := make(chan error, 1)
	go func() { ended <- h.fromNode(stream) }()
	for {
		select {
		case err := <-ended:
			log.Printf("node %d is gone: %v", hello.Node, err)
			return err
		case <-leave:
			return status.Error(codes.Aborted, "this node has attached again")
		case frame := <-h.toNode:
			frames := []*pb.Frame{frame}
			for len(frames) < batch && len(h.toNode) > 0 {
				frames = append(frames, <-h.toNode)
			}
			if err := stream.Send(&pb.ToNode{Word: &pb.ToNode_Frames{Frames: &pb.Frames{Frames: frames}}}); err != nil {
				return err
			}
		}
	}
}

func (h *host) fromNode(stream grpc.BidiStreamingServer[pb.FromNode, pb.ToNode]) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, frame := range message.GetFrames().GetFrames() {
			if queue := h.toHost[frame.Node]; queue != nil && len(frame.Payload) <= frameBytes {
				select {
				case queue <- frame.Payload:
				default: // The other host is away or slow.
				}
			}
		}
	}
}

// dial keeps a connection to another host, which it tells whose frames these are, and writes what there is.
func (h *host) dial(address string, queue chan []byte) {
	for ; ; time.Sleep(200 * time.Millisecond) {
		connection, err := net.Dial("tcp", address)
		if err != nil {
			continue
		}
		header := binary.BigEndian.AppendUint32(nil, h.node)
		for _, err = connection.Write(header); err == nil; {
			frame := <-queue
			buffers := net.Buffers{binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame}
			_, err = buffers.WriteTo(connection)
		}
		connection.Close()
	}
}

// accept reads what another host writes.
func (h *host) accept(connection net.Conn) error {
	defer connection.Close()
	var header [4]byte
	if _, err := io.ReadFull(connection, header[:]); err != nil {
		return err
	}
	from := binary.BigEndian.Uint32(header[:])
	for {
		if _, err := io.ReadFull(connection, header[:]); err != nil {
			return err
		}
		length := binary.BigEndian.Uint32(header[:])
		if length > frameBytes {
			return errors.New("a frame that is too long")
		}
		payload := make([]byte, length)
		if _, err := io.ReadFull(connection, payload); err != nil {
			return err
		}
		select {
		case h.toNode <- &pb.Frame{Node: from, Payload: payload}:
		default: // The node is away or slow.
		}
	}
}

// only admits the owner of one public key, by the SHA-256 of it.
func only(fingerprint string) func([][]byte, [][]*x509.Certificate) error {
	return func(shown [][]byte, _ [][]*x509.Certificate) error {
		certificate, err := x509.ParseCertificate(shown[0])
		if err != nil {
			return err
		}
		if digest := sha256.Sum256(certificate.RawSubjectPublicKeyInfo); hex.EncodeToString(digest[:]) != fingerprint {
			return fmt.Errorf("a certificate with the key %x, which is not the node's", digest)
		}
		return nil
	}
}

func main() {
	node := flag.Uint("node", 0, "the number of the node")
	nodeKey := flag.String("node-key", "", "the `fingerprint` of the node's TLS key: certificate in group.toml")
	listen := flag.String("listen", "127.0.0.1:7301", "where the node attaches")
	network := flag.String("network", "127.0.0.1:7401", "where other hosts connect")
	hosts := flag.String("hosts", "", "the other hosts: `NODE=HOST:PORT,…`")
	keyFile := flag.String("key", "host.pem", "the host's key, made if it is not there")
	flag.Parse()

	certificate, fingerprint, err := identity(*keyFile)
	if err != nil {
		log.Fatal(err)
	}
	h := &host{node: uint32(*node), toNode: make(chan *pb.Frame, waiting), toHost: map[uint32]chan []byte{}, leave: make(chan struct{})}
	for _, entry := range strings.FieldsFunc(*hosts, func(r rune) bool { return r == ',' }) {
		number, address, _ := strings.Cut(entry, "=")
		peer, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			log.Fatalf("-hosts: %q is not NODE=HOST:PORT", entry)
		}
		h.toHost[uint32(peer)] = make(chan []byte, waiting)
		go h.dial(address, h.toHost[uint32(peer)])
	}
	others, err := net.Listen("tcp", *network)
	if err != nil {
		log.Fatal(err)
	}
	go func() {
		for {
			connection, err := others.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go h.accept(connection)
		}
	}()
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		log.Fatal(err)
	}
	config := &tls.Config{
		MinVersion:            tls.VersionTLS13,
		Certificates:          []tls.Certificate{certificate},
		ClientAuth:            tls.RequireAnyClientCert,
		VerifyPeerCertificate: only(strings.ToLower(*nodeKey)),
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)), grpc.MaxRecvMsgSize(2<<20))
	pb.RegisterMessageHostServer(server, h)
	fmt.Printf("fingerprint = %q\n", fingerprint)
	log.Fatal(server.Serve(listener))
}
