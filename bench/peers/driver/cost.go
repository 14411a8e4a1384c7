package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Cost of one part in a while. Resident is what the processes have in memory, their programs and
// what they share included. The working set is what kubelet counts: what the cgroup is charged for
// less what is merely cached; files in memory-backed volumes are in it, pages of a program that
// somebody else has read first are not.
type Cost struct {
	CPUSeconds float64 `json:"cpuSeconds"`
	// Of the largest of the part's containers; the peak since the while began.
	ResidentBytes   int64 `json:"residentBytes"`
	PeakBytes       int64 `json:"peakBytes"`
	WorkingSetBytes int64 `json:"workingSetBytes"`
	// Over all of them.
	SumBytes   int64 `json:"sumBytes"`
	Containers int   `json:"containers"`
	Restarts   int   `json:"restarts"`
}

type container struct {
	part     string
	id       string
	restarts int
}

// Meter reads the cgroups of the contestant's containers and the processes of the cluster itself.
type Meter struct {
	mutex      sync.Mutex
	api        *API
	parts      []Part
	processes  map[string]int
	containers []container
	folders    map[string]string
	// cpu is what each container or process had used when it was last read.
	cpu   map[string]float64
	total map[string]float64
	costs map[string]Cost
	peaks map[string]int64
}

func startMeter(api *API, parts []Part, processes map[string]int, stop <-chan struct{}) *Meter {
	meter := &Meter{api: api, parts: parts, processes: processes, folders: map[string]string{},
		cpu: map[string]float64{}, total: map[string]float64{}, costs: map[string]Cost{}, peaks: map[string]int64{}}
	meter.find()
	meter.read()
	go func() {
		for turn := 1; ; turn++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Second):
			}
			if turn%3 == 0 {
				meter.find()
			}
			meter.read()
		}
	}()
	return meter
}

// find looks up which containers there are now.
func (m *Meter) find() {
	found := []container{}
	for _, part := range m.parts {
		pods, err := podsOf(m.api, Pods{part.Namespace, part.Selector})
		if err != nil {
			logf("pods of %s: %v", part.Name, err)
			return
		}
		for _, pod := range pods {
			for _, status := range append(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses...) {
				id := status.ContainerID[strings.LastIndex(status.ContainerID, "/")+1:]
				if status.Name == part.Container && id != "" {
					found = append(found, container{part.Name, id, status.RestartCount})
				}
			}
		}
	}
	m.mutex.Lock()
	m.containers = found
	m.mutex.Unlock()
}

func (m *Meter) read() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	costs := map[string]Cost{}
	for _, each := range m.containers {
		folder := m.folder(each.id)
		cpu, err := cgroupCPU(folder)
		if err != nil {
			continue
		}
		resident := residentOf(folder)
		cost := costs[each.part]
		cost.Containers++
		cost.Restarts += each.restarts
		cost.ResidentBytes = max(cost.ResidentBytes, resident)
		cost.WorkingSetBytes = max(cost.WorkingSetBytes, cgroupMemory(folder))
		cost.SumBytes += resident
		costs[each.part] = cost
		m.spend(each.part, each.id, cpu)
	}
	for name, pid := range m.processes {
		cpu, resident, err := processCost(pid)
		if err != nil {
			continue
		}
		costs[name] = Cost{ResidentBytes: resident, SumBytes: resident, Containers: 1}
		m.spend(name, name, cpu)
	}
	for name, cost := range costs {
		m.peaks[name] = max(m.peaks[name], cost.ResidentBytes)
	}
	m.costs = costs
}

// spend adds what a container has used since it was last read: those that end take nothing back.
func (m *Meter) spend(part, id string, cpu float64) {
	m.total[part] += cpu - m.cpu[id]
	m.cpu[id] = cpu
}

func (m *Meter) mark() map[string]float64 {
	m.read()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	copied := map[string]float64{}
	for name, value := range m.total {
		copied[name] = value
	}
	m.peaks = map[string]int64{}
	return copied
}

func (m *Meter) since(mark map[string]float64) map[string]Cost {
	m.read()
	m.mutex.Lock()
	defer m.mutex.Unlock()
	costs := map[string]Cost{}
	for name, total := range m.total {
		cost := m.costs[name]
		cost.CPUSeconds = total - mark[name]
		cost.PeakBytes = m.peaks[name]
		costs[name] = cost
	}
	return costs
}

const cgroupRoot = "/sys/fs/cgroup"

func isUnified() bool {
	_, err := os.Stat(cgroupRoot + "/cgroup.procs")
	return err == nil
}

// folder is the container's group below the hierarchy, without the hierarchy's own part.
func (m *Meter) folder(id string) string {
	if folder, known := m.folders[id]; known {
		return folder
	}
	root := cgroupRoot
	if !isUnified() {
		root += "/memory"
	}
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if entry.IsDir() && strings.Contains(entry.Name(), id) {
			m.folders[id] = strings.TrimPrefix(path, root)
			return fs.SkipAll
		}
		return nil
	})
	return m.folders[id]
}

func cgroupCPU(folder string) (float64, error) {
	if folder == "" {
		return 0, fmt.Errorf("no such group")
	}
	if isUnified() {
		used, err := field(cgroupRoot+folder+"/cpu.stat", "usage_usec")
		return float64(used) / 1e6, err
	}
	text, err := os.ReadFile(cgroupRoot + "/cpuacct" + folder + "/cpuacct.usage")
	used, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return float64(used) / 1e9, err
}

func cgroupMemory(folder string) int64 {
	root, usage, inactive := cgroupRoot+"/memory"+folder, "memory.usage_in_bytes", "total_inactive_file"
	if isUnified() {
		root, usage, inactive = cgroupRoot+folder, "memory.current", "inactive_file"
	}
	text, err := os.ReadFile(filepath.Join(root, usage))
	if err != nil {
		return 0
	}
	used, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	cached, _ := field(filepath.Join(root, "memory.stat"), inactive)
	return max(0, used-cached)
}

func residentOf(folder string) int64 {
	root := cgroupRoot + "/memory" + folder
	if isUnified() {
		root = cgroupRoot + folder
	}
	text, _ := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	sum := int64(0)
	for _, pid := range strings.Fields(string(text)) {
		kibibytes, _ := field("/proc/"+pid+"/status", "VmRSS:")
		sum += kibibytes * 1024
	}
	return sum
}

func processCost(pid int) (cpu float64, resident int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The program's name may hold spaces, so fields are counted from its closing bracket.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	kibibytes, err := field(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:")
	return (user + system) / 100, kibibytes * 1024, err
}

// field is the number behind a name at the start of a line.
func field(path, name string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == name {
			return strconv.ParseInt(words[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s has no %s", path, name)
}
