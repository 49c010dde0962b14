return answer
