package main

import (
	"bufio"
	"encoding/json"
	"errors"
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

// Count goes on from where it has read to.
type Count struct {
	log    AuditLog
	offset int64
	writes Writes
}

// mark begins a count with what happens from now on.
func (a AuditLog) mark() *Count {
	count := &Count{log: a, writes: Writes{map[string]int{}, map[string]int{}}}
	if info, err := os.Stat(a.path); err == nil {
		count.offset = info.Size()
	}
	return count
}

func (c *Count) read() error {
	file, err := os.Open(c.log.path)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() < c.offset {
		return errors.New("the audit log was rotated while it was being counted")
	}
	if _, err := file.Seek(c.offset, io.SeekStart); err != nil {
		return err
	}
	reader := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			// What is left has no end yet.
			return nil
		}
		if err != nil {
			return err
		}
		c.offset += int64(len(line))
		c.log.count(line, c.writes)
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

// quiet waits until no status has been written for a while, and gives what was written in all.
func (c *Count) quiet(calm, limit time.Duration) (Writes, error) {
	deadline := time.Now().Add(limit)
	last, changed := -1, time.Now()
	for {
		if err := c.read(); err != nil {
			return c.writes, err
		}
		if sum := c.writes.statuses(); sum != last {
			last, changed = sum, time.Now()
		}
		if time.Since(changed) >= calm || time.Now().After(deadline) {
			return c.writes, nil
		}
		time.Sleep(500 * time.Millisecond)
	}
}
