package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// LoadConfig is of a steady load on many hosts of one address.
type LoadConfig struct {
	Address     string   `json:"address"`
	Hosts       []string `json:"hosts"`
	Paths       []string `json:"paths"`
	Connections int      `json:"connections"`
	// RequestsPerConnection is after how many requests a client takes a new connection.
	RequestsPerConnection int `json:"requestsPerConnection"`
	// PerSecond bounds all requests together; 0 is as fast as answers come.
	PerSecond int `json:"perSecond"`
	// BackendPorts are where this process answers itself, as the backends of all hosts.
	BackendPorts []int `json:"backendPorts"`
}

// LoadReport is a line every second, and the last line when standard input ends.
type LoadReport struct {
	Requests int64            `json:"requests"`
	Failed   int64            `json:"failed"`
	Reasons  map[string]int64 `json:"reasons"`
	// SlowestMs is of the last second.
	SlowestMs float64 `json:"slowestMs"`
}

type loadCounts struct {
	mutex   sync.Mutex
	report  LoadReport
	slowest time.Duration
}

// load begins with the first line of standard input, so that its backends are there before, and
// runs until standard input ends: a load whose parent has died must not go on.
func load(path string) error {
	var config LoadConfig
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return err
	}
	counts := &loadCounts{report: LoadReport{Reasons: map[string]int64{}}}
	for _, port := range config.BackendPorts {
		if _, err := startBackend("backend", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
			return err
		}
	}
	stop := make(chan struct{})
	input := bufio.NewReader(os.Stdin)
	if _, err := input.ReadString('\n'); err != nil {
		return nil
	}
	go func() {
		_, _ = io.Copy(io.Discard, input)
		close(stop)
	}()
	var clients sync.WaitGroup
	for number := range config.Connections {
		clients.Go(func() { loadClient(config, number, counts, stop) })
	}
	out := json.NewEncoder(os.Stdout)
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			clients.Wait()
			return out.Encode(counts.take())
		case <-ticker.C:
			if err := out.Encode(counts.take()); err != nil {
				return err
			}
		}
	}
}

func (c *loadCounts) take() LoadReport {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	report := c.report
	report.SlowestMs = milliseconds(c.slowest)
	report.Reasons = map[string]int64{}
	for reason, count := range c.report.Reasons {
		report.Reasons[reason] = count
	}
	c.slowest = 0
	return report
}

// loadClient asks one host after the other, some requests on each connection. Every client has
// hosts of its own turn, so that all are under load at any time.
func loadClient(config LoadConfig, number int, counts *loadCounts, stop <-chan struct{}) {
	pause := time.Duration(0)
	if config.PerSecond > 0 {
		pause = time.Second * time.Duration(config.Connections) / time.Duration(config.PerSecond)
	}
	for turn := number; ; turn += config.Connections {
		host := config.Hosts[turn%len(config.Hosts)]
		session := &Session{address: config.Address, host: host}
		for request := range config.RequestsPerConnection {
			select {
			case <-stop:
				session.close()
				return
			default:
			}
			began := time.Now()
			answer, err := session.get(config.Paths[(turn+request)%len(config.Paths)])
			counts.note(time.Since(began), answer, err)
			if rest := pause - time.Since(began); rest > 0 {
				time.Sleep(rest)
			}
		}
		session.close()
	}
}

func (c *loadCounts) note(took time.Duration, answer Answer, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.report.Requests++
	c.slowest = max(c.slowest, took)
	if err == nil && answer.status == 200 {
		return
	}
	c.report.Failed++
	c.report.Reasons[reasonOf(answer, err)]++
}
