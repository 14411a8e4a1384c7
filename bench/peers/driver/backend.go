package main

import (
	"fmt"
	"net"
	"net/http"
)

// Backend answers every request with its own name. Pods reach it at the node's address, as they
// would reach any endpoint.
type Backend struct {
	name    string
	address string
	port    int
}

func startBackend(name, address string) (Backend, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return Backend{}, fmt.Errorf("backend %s: %w", name, err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte(name))
	})}
	go func() { _ = server.Serve(listener) }()
	place := listener.Addr().(*net.TCPAddr)
	return Backend{name, place.IP.String(), place.Port}, nil
}
