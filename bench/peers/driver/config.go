package main

import (
	"encoding/json"
	"os"
	"time"
)

// Part is one container of the contestant whose cost is measured, wherever its pods are.
type Part struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	Selector  string `json:"selector"`
	Container string `json:"container"`
}

// Pods are found by namespace and label selector.
type Pods struct {
	Namespace string `json:"namespace"`
	Selector  string `json:"selector"`
}

// Config is the whole of a run against one contestant. Everything that takes time is bounded by it.
type Config struct {
	Server    string `json:"server"`
	Authority string `json:"authority"`
	Token     string `json:"token"`
	AuditLog  string `json:"auditLog"`
	// AuditUser is the account whose writes are counted.
	AuditUser string `json:"auditUser"`
	Class     string `json:"class"`
	// Controller names the implementation among the parents of a route's status.
	Controller     string         `json:"controller"`
	Parts          []Part         `json:"parts"`
	Processes      map[string]int `json:"processes"`
	ControllerPods Pods           `json:"controllerPods"`
	DataPlanePods  Pods           `json:"dataPlanePods"`
	Sizes          []int          `json:"sizes"`
	// RestartSizes are the sizes at which controller and data plane are restarted.
	RestartSizes []int `json:"restartSizes"`
	Routes       int   `json:"routes"`
	Samples      int   `json:"samples"`
	HandOvers    int   `json:"handOvers"`
	// LeaderChanges is how often the leader is told to end in a burst of new sets.
	LeaderChanges int `json:"leaderChanges"`
	// Limits bound, for each size, the seconds from the last creation until all statuses are true.
	Limits []int `json:"limits"`
	// KindSeconds bounds the samples of one kind of change, SampleSeconds one sample.
	KindSeconds   int `json:"kindSeconds"`
	SampleSeconds int `json:"sampleSeconds"`
	// StartSeconds bounds the time until the first tenants are served.
	StartSeconds int `json:"startSeconds"`
	// BackendAddress is where this program serves as the backend of all tenants.
	BackendAddress string `json:"backendAddress"`
}

func readConfig(path string) (Config, error) {
	var config Config
	text, err := os.ReadFile(path)
	if err != nil {
		return config, err
	}
	return config, json.Unmarshal(text, &config)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
