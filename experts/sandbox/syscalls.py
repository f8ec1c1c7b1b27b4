"""System calls of x86-64 by name and number, and which of them a program may make.

Left out of both lists, and so forbidden, is all that reaches beyond the program's own memory, files and children:
sockets, mounts, namespaces, tracing, other processes' memory, keys, shared memory of System V, message queues,
modules, BPF, io_uring, priorities, owners and extended attributes of files, device nodes.
"""

from __future__ import annotations

_ALWAYS = """
access alarm arch_prctl brk chdir clock_getres clock_gettime clock_nanosleep close close_range copy_file_range
dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_wait eventfd eventfd2 execve exit
exit_group faccessat faccessat2 fadvise64 fallocate fchdir fdatasync flock fstat fstatfs fsync ftruncate futex
get_robust_list getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups getitimer getpeername getpgid
getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit getrusage getsid getsockname
getsockopt gettid gettimeofday getuid lseek lstat madvise membarrier mincore mkdir mkdirat mmap mprotect mremap
msync munmap nanosleep newfstatat pause pipe pipe2 poll ppoll pread64 preadv pselect6 pwrite64 pwritev read
readlink readlinkat readv recvfrom recvmsg rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction
rt_sigpending rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait sched_get_priority_max
sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler sched_yield select sendfile sendmsg
sendto set_robust_list set_tid_address setitimer setsid setsockopt shutdown sigaltstack stat statfs statx
sysinfo time timer_create timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create
timerfd_gettime timerfd_settime times umask uname unlink unlinkat wait4 waitid write writev
"""

_IN_COMPANY = """
chmod creat fchmod fchmodat fork futimesat kill link linkat setpgid symlink symlinkat tgkill tkill truncate
utime utimensat utimes vfork
"""

_TABLE = """
read=0 write=1 open=2 close=3 stat=4 fstat=5 lstat=6 poll=7 lseek=8 mmap=9 mprotect=10 munmap=11 brk=12
rt_sigaction=13 rt_sigprocmask=14 rt_sigreturn=15 ioctl=16 pread64=17 pwrite64=18 readv=19 writev=20 access=21
pipe=22 select=23 sched_yield=24 mremap=25 msync=26 mincore=27 madvise=28 dup=32 dup2=33 pause=34 nanosleep=35
getitimer=36 alarm=37 setitimer=38 getpid=39 sendfile=40 sendto=44 recvfrom=45 sendmsg=46 recvmsg=47 shutdown=48
getsockname=51 getpeername=52 socketpair=53 setsockopt=54 getsockopt=55 clone=56 fork=57 vfork=58 execve=59
exit=60 wait4=61 kill=62 uname=63 fcntl=72 flock=73 fsync=74 fdatasync=75 truncate=76 ftruncate=77 getdents=78
getcwd=79 chdir=80 fchdir=81 rename=82 mkdir=83 rmdir=84 creat=85 link=86 unlink=87 symlink=88 readlink=89
chmod=90 fchmod=91 umask=95 gettimeofday=96 getrlimit=97 getrusage=98 sysinfo=99 times=100 getuid=102 getgid=104
geteuid=107 getegid=108 setpgid=109 getppid=110 getpgrp=111 setsid=112 getgroups=115 getresuid=118 getresgid=120
getpgid=121 getsid=124 rt_sigpending=127 rt_sigtimedwait=128 rt_sigsuspend=130 sigaltstack=131 utime=132
statfs=137 fstatfs=138 getpriority=140 sched_getparam=143 sched_getscheduler=145 sched_get_priority_max=146
sched_get_priority_min=147 prctl=157 arch_prctl=158 gettid=186 tkill=200 time=201 futex=202
sched_getaffinity=204 epoll_create=213 getdents64=217 set_tid_address=218 restart_syscall=219 fadvise64=221
timer_create=222 timer_settime=223 timer_gettime=224 timer_getoverrun=225 timer_delete=226 clock_gettime=228
clock_getres=229 clock_nanosleep=230 exit_group=231 epoll_wait=232 epoll_ctl=233 tgkill=234 utimes=235
waitid=247 openat=257 mkdirat=258 futimesat=261 newfstatat=262 unlinkat=263 renameat=264 linkat=265
symlinkat=266 readlinkat=267 fchmodat=268 faccessat=269 pselect6=270 ppoll=271 set_robust_list=273
get_robust_list=274 utimensat=280 epoll_pwait=281 timerfd_create=283 eventfd=284 fallocate=285
timerfd_settime=286 timerfd_gettime=287 eventfd2=290 epoll_create1=291 dup3=292 pipe2=293 preadv=295 pwritev=296
prlimit64=302 getcpu=309 renameat2=316 getrandom=318 membarrier=324 copy_file_range=326 statx=332 rseq=334
close_range=436 faccessat2=439
"""

NUMBERS = {name: int(number) for name, _, number in (entry.partition("=") for entry in _TABLE.split())}

ALLOWED = tuple(_ALWAYS.split())
"""Allowed with any arguments."""

COMPANY = tuple(_IN_COMPANY.split())
"""Allowed only where the program has a process namespace and a file system of its own."""
