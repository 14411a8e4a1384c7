package main

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// requestTimeout is longer than any pause of a contestant that its clients would put up with.
const requestTimeout = 10 * time.Second

// Answer is what a client sees of one request.
type Answer struct {
	status int
	body   string
	leaf   [sha256.Size]byte
}

// Connection is a TLS connection to the Gateway for one server name, over which requests follow
// each other. Certificates are compared by the caller, so a wrong one is seen and not merely
// refused.
type Connection struct {
	host   string
	conn   *tls.Conn
	reader *bufio.Reader
}

func connect(address, host string) (*Connection, error) {
	dialer := &net.Dialer{Timeout: requestTimeout}
	raw, err := dialer.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, &tls.Config{ServerName: host, InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	_ = raw.SetDeadline(time.Now().Add(requestTimeout))
	if err := conn.Handshake(); err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &Connection{host, conn, bufio.NewReader(conn)}, nil
}

func (c *Connection) leaf() [sha256.Size]byte {
	return sha256.Sum256(c.conn.ConnectionState().PeerCertificates[0].Raw)
}

func (c *Connection) get(path string) (Answer, error) {
	_ = c.conn.SetDeadline(time.Now().Add(requestTimeout))
	if _, err := fmt.Fprintf(c.conn, "GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, c.host); err != nil {
		return Answer{}, err
	}
	response, err := http.ReadResponse(c.reader, nil)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{response.StatusCode, string(body), c.leaf()}
	if response.Close {
		c.close()
	}
	return answer, nil
}

func (c *Connection) close() { _ = c.conn.Close() }

// visit is one request on a connection of its own.
func visit(address, host, path string) (Answer, error) {
	connection, err := connect(address, host)
	if err != nil {
		return Answer{}, err
	}
	defer connection.close()
	return connection.get(path)
}

// Session keeps a connection as long as it lasts, as clients do.
type Session struct {
	address, host string
	connection    *Connection
}

// get asks again on a new connection when the kept one turned out to be gone: a server may close an
// idle connection at any time, and clients repeat such a GET (RFC 9110, 9.2.2).
func (s *Session) get(path string) (Answer, error) {
	reused := s.connection != nil
	if !reused {
		connection, err := connect(s.address, s.host)
		if err != nil {
			return Answer{}, err
		}
		s.connection = connection
	}
	answer, err := s.connection.get(path)
	if err == nil {
		return answer, nil
	}
	s.connection.close()
	s.connection = nil
	if reused && isClosed(err) {
		return s.get(path)
	}
	return answer, err
}

func (s *Session) close() {
	if s.connection != nil {
		s.connection.close()
		s.connection = nil
	}
}

func isClosed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "connection reset") || strings.Contains(err.Error(), "broken pipe")
}

// reasonOf gives failures short names, so that a thousand of one kind are one line.
func reasonOf(answer Answer, err error) string {
	var timeout net.Error
	switch {
	case err == nil:
		return fmt.Sprintf("status %d", answer.status)
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case strings.Contains(err.Error(), "refused"):
		return "connection refused"
	case strings.Contains(err.Error(), "reset"):
		return "connection reset"
	case errors.Is(err, io.EOF):
		return "connection closed"
	case strings.Contains(err.Error(), "no route to host"), strings.Contains(err.Error(), "unreachable"):
		return "unreachable"
	default:
		return "TLS or HTTP: " + err.Error()
	}
}
