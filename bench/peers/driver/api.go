package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// API is the few calls that the driver makes. Requests share HTTP/2 connections; watches have one
// of their own, so that a burst of creations never delays what they tell.
type API struct {
	server  string
	token   string
	calls   *http.Client
	watches *http.Client
}

// APIError is an answer that is not a success.
type APIError struct {
	Code int
	Text string
}

func (e *APIError) Error() string { return fmt.Sprintf("%d: %s", e.Code, e.Text) }

func newAPI(config Config) (*API, error) {
	pem, err := os.ReadFile(config.Authority)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("the authority's file has no certificate")
	}
	client := func(timeout time.Duration) *http.Client {
		transport := &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: pool},
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 64,
		}
		return &http.Client{Transport: transport, Timeout: timeout}
	}
	return &API{server: config.Server, token: config.Token, calls: client(60 * time.Second), watches: client(0)}, nil
}

func (a *API) request(ctx context.Context, method, path, contentType string, body any) (*http.Request, error) {
	var reader io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.server+path, reader)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+a.token)
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	return request, nil
}

func (a *API) do(method, path, contentType string, body, into any) error {
	request, err := a.request(context.Background(), method, path, contentType, body)
	if err != nil {
		return err
	}
	response, err := a.calls.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 400))
		return &APIError{response.StatusCode, string(text)}
	}
	if into == nil {
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	return json.NewDecoder(response.Body).Decode(into)
}

func (a *API) get(path string, into any) error { return a.do("GET", path, "", nil, into) }

func (a *API) patch(path string, body any) error {
	return a.do("PATCH", path, "application/merge-patch+json", body, nil)
}

// create takes an object that is there already for created: a step that is repeated has been done.
func (a *API) create(object Object) error {
	err := a.do("POST", object.collection, "application/json", object.content, nil)
	var refusal *APIError
	if errors.As(err, &refusal) && refusal.Code == http.StatusConflict {
		return nil
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", object.path(), err)
	}
	return nil
}

func (a *API) remove(path string, options any) error {
	err := a.do("DELETE", path, "application/json", options, nil)
	var refusal *APIError
	if errors.As(err, &refusal) && refusal.Code == http.StatusNotFound {
		return nil
	}
	return err
}

// watch lists a collection and follows it until ctx ends, and starts afresh whenever the server
// ends the stream: take then sees objects again that it knows.
func watch[T any](ctx context.Context, a *API, path string, take func(kind string, object T)) {
	for ctx.Err() == nil {
		if err := watchOnce(ctx, a, path, take); err != nil && ctx.Err() == nil {
			logf("watch of %s: %v", path, err)
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func watchOnce[T any](ctx context.Context, a *API, path string, take func(kind string, object T)) error {
	var list struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
		Items []T `json:"items"`
	}
	if err := a.get(path, &list); err != nil {
		return err
	}
	for _, item := range list.Items {
		take("ADDED", item)
	}
	query := "?watch=1&allowWatchBookmarks=true&resourceVersion=" + list.Metadata.ResourceVersion
	request, err := a.request(ctx, "GET", path+query, "", nil)
	if err != nil {
		return err
	}
	response, err := a.watches.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return &APIError{Code: response.StatusCode}
	}
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string `json:"type"`
			Object T      `json:"object"`
		}
		if err := decoder.Decode(&event); err != nil {
			return err
		}
		switch event.Type {
		case "ERROR":
			return errors.New("the server ended the watch")
		case "BOOKMARK":
		default:
			take(event.Type, event.Object)
		}
	}
}
