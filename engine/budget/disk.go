package budget

import "golang.org/x/sys/unix"

// Disk returns how many bytes may be written to a folder, and whether that is memory.
func Disk(dir string) (free uint64, memory bool, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, false, err
	}
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	kind := uint32(disk.Type)
	return disk.Bavail * uint64(disk.Bsize), kind == tmpfs || kind == ramfs, nil
}
