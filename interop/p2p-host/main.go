// A reference host: it carries the frames of one node to the hosts of the other nodes, and theirs to it (spec/carriers.md). Its own network is plain TCP, which
// keeps nothing secret, and proves no more than an address: a real host authenticates its peers. Frames for which there is no room are dropped, as a host may do.
//
//	p2p-host -node 1 -node-key 5d3a… -listen 127.0.0.1:7301 -network 127.0.0.1:7401 -hosts 2=127.0.0.1:7402,3=127.0.0.1:7403
package main

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"net"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "p2phost/hostv1"
)

const (
	version    = 1
	frameBytes = 64 << 10 // the longest frame
	batchBytes = 1 << 20  // the frames of one message to the node: it takes no more
	frameCosts = 16       // what a frame takes in a message beside its bytes
	waiting    = 256      // frames that wait for one peer, and of one peer for the node
)

type host struct {
	pb.UnimplementedMessageHostServer
	node  uint32
	order []uint32 // the peers' numbers
	peers map[uint32]*peer
	came  chan struct{} // frames wait for the node
	mutex sync.Mutex
	leave chan struct{} // closed when the node attaches again
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
	h.wake()
	for turn := 0; ; {
		select {
		case err := <-ended:
			log.Printf("node %d is gone: %v", hello.Node, err)
			return err
		case <-leave:
			return status.Error(codes.Aborted, "this node has attached again")
		case <-h.came:
			frames := h.batch(&turn)
			if len(frames) == 0 {
				continue
			}
			h.wake() // There may be more.
			if err := stream.Send(&pb.ToNode{Word: &pb.ToNode_Frames{Frames: &pb.Frames{Frames: frames}}}); err != nil {
				return err
			}
		}
	}
}

// wake has the node's stream look for frames.
func (h *host) wake() {
	select {
	case h.came <- struct{}{}:
	default:
	}
}

// batch takes what waits for the node, of the peers in turns, so that a flood of one keeps no other's frames away.
func (h *host) batch(turn *int) (frames []*pb.Frame) {
	for bytes, idle := 0, 0; idle < len(h.order) && bytes+frameBytes+frameCosts <= batchBytes; *turn++ {
		from := h.order[*turn%len(h.order)]
		select {
		case payload := <-h.peers[from].in:
			frames, idle = append(frames, &pb.Frame{Node: from, Payload: payload}), 0
			bytes += len(payload) + frameCosts
		default:
			idle++
		}
	}
	return frames
}

func (h *host) fromNode(stream grpc.BidiStreamingServer[pb.FromNode, pb.ToNode]) error {
	for {
		message, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, frame := range message.GetFrames().GetFrames() {
			if to := h.peers[frame.Node]; to != nil && len(frame.Payload) <= frameBytes {
				select {
				case to.out <- frame.Payload:
				default: // The other host is away or slow.
				}
			}
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
	h := &host{node: uint32(*node), peers: map[uint32]*peer{}, came: make(chan struct{}, 1), leave: make(chan struct{})}
	for _, entry := range strings.FieldsFunc(*hosts, func(r rune) bool { return r == ',' }) {
		number, address, _ := strings.Cut(entry, "=")
		other, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			log.Fatalf("-hosts: %q is not NODE=HOST:PORT", entry)
		}
		h.peers[uint32(other)] = &peer{address: address, out: make(chan []byte, waiting), in: make(chan []byte, waiting)}
		h.order = append(h.order, uint32(other))
	}
	for _, other := range h.peers {
		go h.dial(other)
	}
	others, err := net.Listen("tcp", *network)
	if err != nil {
		log.Fatal(err)
	}
	go h.listen(others)
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
