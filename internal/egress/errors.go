package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"dakghar/internal/fault"
)

// errRefused is the dialer's word for an address that is not allowed.
var errRefused = errors.New("address refused")

func errBodyTooLarge() error { return fault.New(fault.Theirs, "egress_body_too_large", nil) }

// explain turns an error of the network into a fault, by its kind alone: its
// words could repeat the address or what the other side said.
func explain(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fault.New(fault.Ours, "egress_stopped", ended)
	}
	if errors.Is(err, errRefused) {
		return fault.New(fault.Permanent, "egress_address_refused", nil)
	}
	return fault.New(fault.Theirs, code(err), nil)
}

func code(err error) string {
	switch {
	case timedOut(err):
		return "egress_timeout"
	case strings.Contains(err.Error(), "response headers exceeded"), strings.Contains(err.Error(), "header list larger"): // no type tells it
		return "egress_headers_too_large"
	case isType[*net.DNSError](err):
		return "egress_name_unknown"
	case isType[*tls.CertificateVerificationError](err), isType[tls.RecordHeaderError](err), isType[tls.AlertError](err), tlsText(err):
		return "egress_tls"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "egress_unreachable"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), closedText(err):
		return "egress_reset"
	}
	return "egress_protocol"
}

func timedOut(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || ok && timeout.Timeout()
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// tlsText knows the faults of a handshake that have no type.
func tlsText(err error) bool {
	return strings.HasPrefix(err.Error(), "tls: ") || strings.HasPrefix(err.Error(), "remote error: tls: ")
}

// closedText knows a connection that the other side had closed before it answered.
func closedText(err error) bool {
	return strings.Contains(err.Error(), "server closed idle connection")
}
