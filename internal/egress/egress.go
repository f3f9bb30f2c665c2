// Package egress is the way to the outside world: every request to an address
// that somebody else chose, or answers at, goes through [Client].
//
// Invariants:
//
//   - https only, TLS 1.2 or later, certificates checked. No name and password in
//     an address.
//   - The address is checked when the connection is made, after the name was
//     resolved, so that a name cannot point inward: loopback, private, link-local
//     with the metadata services in it, shared (CGNAT), multicast, reserved and
//     documentation ranges are refused, and so are the forms of IPv6 that carry an
//     IPv4 address: mapped, compatible, NAT64, 6to4 and Teredo.
//   - Hosts that the caller refuses are not asked, each time anew.
//   - No proxy from the environment, no cookies, no redirect followed: an answer
//     is returned as it is.
//   - Connecting, the first byte and the whole have deadlines. The bytes of an
//     answer's headers and of its body are bounded; more is an error, and the
//     connection is given up.
//   - Connections are kept and used again, and their number to one host can be
//     bounded. HTTP/1.1 is spoken, and HTTP/2 if asked for.
//
// Errors are [*fault.Error]s: permanent for an address that will never be
// allowed, ours where the caller's context ended, theirs for all that the other
// side or the network does. None contains an address, a header or a word of the
// other side's.
//
// It refuses to try again by itself, though a request that may be repeated and met
// a connection that the other side had closed is sent on another one; to judge a
// status; and to keep anything of an answer.
package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"dakghar/internal/fault"
)

// Config is what a [Client] is built from. Zero durations and counts take the
// defaults named beside them.
type Config struct {
	// AllowLoopback also lets requests go to this machine, over http too: for the
	// local stack and for tests alone.
	AllowLoopback bool
	// ConnectTimeout bounds resolving and connecting, and the TLS handshake once
	// more: 5 s.
	ConnectTimeout time.Duration
	// FirstByteTimeout bounds the wait for an answer's headers, all of them: 10 s.
	FirstByteTimeout time.Duration
	// Timeout bounds the whole: 30 s.
	Timeout time.Duration
	// HeaderBytesMax bounds an answer's headers: 64 KiB.
	HeaderBytesMax int64
	// BodyBytesMax bounds an answer's body: 8 MiB.
	BodyBytesMax int64
	// ConnectionsPerHost bounds the connections to one host; a request that finds
	// them all in use waits, within its deadline. No bound when zero. As many are
	// kept open between requests, otherwise 8.
	ConnectionsPerHost int
	// HTTP2 also speaks HTTP/2, where the other side offers it.
	HTTP2 bool
	// Refused are hosts to which no request goes, whatever they resolve to. One
	// with a port means that port alone.
	Refused []string
	// Roots are the authorities that are trusted; the system's when nil.
	Roots *x509.CertPool
}

func (c Config) withDefaults() Config {
	c.ConnectTimeout = or(c.ConnectTimeout, 5*time.Second)
	c.FirstByteTimeout = or(c.FirstByteTimeout, 10*time.Second)
	c.Timeout = or(c.Timeout, 30*time.Second)
	c.HeaderBytesMax = or(c.HeaderBytesMax, 64<<10)
	c.BodyBytesMax = or(c.BodyBytesMax, 8<<20)
	return c
}

func or[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

// Connections that are kept open between requests, to all hosts together and to one.
const idleMax, idlePerHost = 100, 8

// Client makes requests. It is safe for concurrent use; share one.
type Client struct {
	cfg    Config
	secure *http.Transport // https, to addresses that are allowed
	local  *http.Transport // http, to this machine; nil where that is not allowed
}

// New returns a client.
func New(cfg Config) *Client {
	cfg = cfg.withDefaults()
	c := &Client{cfg: cfg, secure: cfg.transport(func(a netip.Addr) bool {
		return public(a) || cfg.AllowLoopback && a.Unmap().IsLoopback()
	})}
	if cfg.HTTP2 {
		c.secure.Protocols.SetHTTP2(true)
		// A connection that carries all requests to a host must not stay the one when
		// the host has silently gone.
		c.secure.HTTP2 = &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 5 * time.Second}
	}
	if cfg.AllowLoopback {
		c.local = cfg.transport(func(a netip.Addr) bool { return a.Unmap().IsLoopback() })
	}
	return c
}

// transport makes one that connects only to allowed addresses.
func (c Config) transport(allowed func(netip.Addr) bool) *http.Transport {
	dialer := &net.Dialer{
		Timeout:   c.ConnectTimeout,
		KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || at.Port() == 0 || !allowed(at.Addr()) {
				return errRefused
			}
			return nil
		},
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:                  nil, // the environment does not choose the way
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: c.Roots},
		TLSHandshakeTimeout:    c.ConnectTimeout,
		ResponseHeaderTimeout:  c.FirstByteTimeout,
		MaxResponseHeaderBytes: c.HeaderBytesMax,
		MaxIdleConns:           max(idleMax, c.ConnectionsPerHost),
		MaxIdleConnsPerHost:    or(c.ConnectionsPerHost, idlePerHost),
		MaxConnsPerHost:        c.ConnectionsPerHost,
		IdleConnTimeout:        time.Minute,
		DisableCompression:     true, // what is counted is what is sent
		Protocols:              protocols,
	}
}

// Request is what is sent. Body is nil for none.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Response is what came back, whole. Status is 200 to 599.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the answer.
func (c *Client) Do(ctx context.Context, r Request) (Response, error) {
	transport, err := c.way(r.URL)
	if err != nil {
		return Response{}, err
	}
	bounded, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(bounded, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return Response{}, fault.New(fault.Permanent, "egress_url_refused", nil)
	}
	if r.Header != nil {
		req.Header = r.Header.Clone()
	}
	answer, err := transport.RoundTrip(req) // not through http.Client: that follows, and its errors repeat the address
	if err != nil {
		return Response{}, explain(ctx, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode < http.StatusOK || answer.StatusCode > 599 {
		return Response{}, fault.New(fault.Theirs, "egress_protocol", nil)
	}
	body, err := c.read(ctx, answer)
	return Response{Status: answer.StatusCode, Header: answer.Header, Body: body}, err
}

// read takes a body up to its bound.
func (c *Client) read(ctx context.Context, answer *http.Response) ([]byte, error) {
	if answer.ContentLength > c.cfg.BodyBytesMax {
		return nil, errBodyTooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, c.cfg.BodyBytesMax+1))
	switch {
	case err != nil:
		return nil, explain(ctx, err)
	case int64(len(body)) > c.cfg.BodyBytesMax:
		return nil, errBodyTooLarge()
	}
	return body, nil
}

const urlBytesMax = 8 << 10

// way checks an address as far as it can be without resolving its name.
func (c *Client) way(address string) (*http.Transport, error) {
	u, err := url.Parse(address)
	switch {
	case err == nil && c.refuses(u):
		return nil, fault.New(fault.Permanent, "egress_host_refused", nil)
	case err == nil && !plainHost(u.Hostname()): // what is looked up would be another name than the one that is compared
		return nil, fault.New(fault.Permanent, "egress_url_refused", nil)
	case err != nil, len(address) > urlBytesMax, u.User != nil, u.Fragment != "", u.Opaque != "", u.Hostname() == "", !plainPort(u.Port()):
		return nil, fault.New(fault.Permanent, "egress_url_refused", nil)
	case u.Scheme == "https":
		if literal, err := netip.ParseAddr(u.Hostname()); err == nil && (literal.Is4In6() || literal.Zone() != "") {
			return nil, fault.New(fault.Permanent, "egress_address_refused", nil)
		}
		return c.secure, nil
	case u.Scheme == "http" && c.local != nil:
		return c.local, nil
	}
	return nil, fault.New(fault.Permanent, "egress_url_refused", nil)
}

func (c *Client) refuses(u *url.URL) bool {
	name := strings.TrimRight(u.Hostname(), ".") // a root's dot leads to the same place
	return slices.ContainsFunc(c.cfg.Refused, func(host string) bool {
		return strings.EqualFold(host, name) || strings.EqualFold(host, net.JoinHostPort(name, u.Port()))
	})
}

// plainHost reports whether a name is written as it is looked up, or is an address.
func plainHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._:%", r)
	})
}

func plainPort(port string) bool {
	if port == "" {
		return true
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// Doer is a [Client] in the words of whoever declares a request and a response of
// its own: of the same members, and without knowing this package.
type Doer[Q ~struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}, A ~struct {
	Status int
	Header http.Header
	Body   []byte
}] struct{ Client *Client }

// Do is [Client.Do].
func (d Doer[Q, A]) Do(ctx context.Context, r Q) (A, error) {
	answer, err := d.Client.Do(ctx, Request(r))
	return A(answer), err
}

// CloseIdle closes the connections that are not in use.
func (c *Client) CloseIdle() {
	c.secure.CloseIdleConnections()
	if c.local != nil {
		c.local.CloseIdleConnections()
	}
}
