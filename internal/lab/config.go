package lab

// A Config holds the settings of a lab.
type Config struct {
	Kit Kit
	// Argv starts this program again as the holder. The command must call Hold with the same kit.
	Argv []string
	// Agent replaces host.Agent as the first argument of a command.
	Agent []string
	// UserNamespace puts the lab into a user namespace even for root. Other users' labs always are in one.
	UserNamespace bool
}
