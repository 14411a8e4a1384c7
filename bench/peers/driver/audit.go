package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"
)

// Writes are requests of the contestant's account that change something, by what they change
// (`listenersets/status`). Refused ones, conflicts above all, are counted apart.
type Writes struct {
	Accepted map[string]int `json:"accepted"`
	Refused  map[string]int `json:"refused"`
}

// statuses is the sum over all kinds of status.
func (w Writes) statuses() int {
	sum := 0
	for kind, count := range w.Accepted {
		if strings.HasSuffix(kind, "/status") {
			sum += count
		}
	}
	return sum
}

// AuditLog is the API server's, which writes each request down before it is answered.
type AuditLog struct {
	path string
	user string
}

// mark is the place in the log up to which everything has happened before now.
func (a AuditLog) mark() int64 {
	info, err := os.Stat(a.path)
	if err != nil {
		return 0
	}
	return info.Size()
}

func (a AuditLog) since(mark int64) (Writes, error) {
	writes := Writes{map[string]int{}, map[string]int{}}
	file, err := os.Open(a.path)
	if err != nil {
		return writes, err
	}
	defer file.Close()
	if _, err := file.Seek(mark, io.SeekStart); err != nil {
		return writes, err
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			// What is left has no end yet.
			return writes, nil
		}
		if err != nil {
			return writes, err
		}
		a.count(line, writes)
	}
}

func (a AuditLog) count(line []byte, writes Writes) {
	var event struct {
		Stage string `json:"stage"`
		Verb  string `json:"verb"`
		User  struct {
			Username string `json:"username"`
		} `json:"user"`
		Object struct {
			Resource    string `json:"resource"`
			Subresource string `json:"subresource"`
		} `json:"objectRef"`
		Response struct {
			Code int `json:"code"`
		} `json:"responseStatus"`
	}
	if json.Unmarshal(line, &event) != nil || event.Stage != "ResponseComplete" || event.User.Username != a.user {
		return
	}
	switch event.Verb {
	case "create", "update", "patch", "delete":
	default:
		return
	}
	kind := event.Object.Resource
	if kind == "leases" || kind == "events" {
		return
	}
	if event.Object.Subresource != "" {
		kind += "/" + event.Object.Subresource
	}
	if event.Response.Code/100 == 2 {
		writes.Accepted[kind]++
	} else {
		writes.Refused[kind]++
	}
}

// quiet waits until no status has been written for a while, and gives what was written since mark.
func (a AuditLog) quiet(mark int64, calm, limit time.Duration) (Writes, error) {
	deadline := time.Now().Add(limit)
	last, changed := -1, time.Now()
	for {
		writes, err := a.since(mark)
		if err != nil {
			return writes, err
		}
		if sum := writes.statuses(); sum != last {
			last, changed = sum, time.Now()
		}
		if time.Since(changed) >= calm || time.Now().After(deadline) {
			return writes, nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}
